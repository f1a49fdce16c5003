//! Every operation in float64, as plainly as its equation reads.

mod activation;
mod norm;
mod product;
mod rotary;
mod softmax;

pub use activation::{naive_activation, naive_erf};
pub use norm::{naive_gated_rms_norm, naive_layer_norm, naive_rms_norm};
pub use product::{Host, Product, naive_dequantize, naive_gemm};
pub use rotary::naive_rotary;
pub use softmax::{naive_causal_softmax, naive_softmax};

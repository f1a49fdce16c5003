#![doc = include_str!("../README.md")]

mod array;
mod backend;
mod conv;
mod cpu;
mod error;
mod gate;
#[cfg(any(feature = "cuda", feature = "emulated"))]
mod gpu;
mod scan;
mod shape;

pub use array::{
    GateArgs, Mode, Options, ScanArgs, StepArgs, causal_conv1d, gated_delta_rule, gated_delta_rule_with,
    gated_rms_norm, gates, step,
};
pub use backend::ScanBackend;
pub use conv::CausalConv;
pub use error::{Error, Result};
pub use fermi_blas::Activation;
pub use gate::Gates;
pub use scan::{L2_EPS, Scan, ScanInputs};
pub use shape::ScanShape;

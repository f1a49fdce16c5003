//! The CPU backend: plain Rust kernels on a thread pool of its own, the matrix product from the crate `gemm`.

mod activation;
mod add;
mod argmax;
mod awake;
mod backend;
mod blas;
mod buffer;
mod dequantize;
mod few_rows;
mod few_rows_batched;
mod gemm;
mod gemv;
mod instructions;
mod lanes;
pub mod math;
mod norm;
mod parallel;
mod profile;
mod quantize;
mod region;
mod rotary;
mod row_ops;
mod softmax;

pub use backend::{Cpu, CpuBuilder};
pub use buffer::CpuBuffer;
pub use instructions::{Instructions, Isa, Kernel, LANES, prefetch};
pub use parallel::SharedRows;
pub use profile::{CpuSpan, Profile};
pub use quantize::quantize;
pub(crate) use quantize::quantize_row;

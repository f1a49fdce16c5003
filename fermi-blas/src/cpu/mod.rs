//! The CPU backend: plain Rust kernels on a thread pool of its own, the matrix product from the crate `gemm`.

mod backend;
mod blas;
mod buffer;
mod parallel;
mod profile;
mod row_ops;

pub use backend::Cpu;
pub use buffer::CpuBuffer;
pub use parallel::SharedRows;
pub use profile::{CpuSpan, Profile};

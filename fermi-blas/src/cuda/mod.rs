//! NVIDIA GPUs from Fermi (2011) on, through CUDA's driver API and cuBLAS.
//!
//! | file | concept |
//! |---|---|
//! | `status` | the libraries' return codes as errors |
//! | `context` | a card's context, which every call makes current |
//! | `memory` | device memory, and a cap on it |
//! | `modules` | kernels, compiled by the driver once |
//! | `math_mode` | in which arithmetic cuBLAS multiplies, and what is looked up by name |
//! | `products` | cuBLAS |
//! | `clock` | time by events |
//! | `driver` | all of it as a [`Runtime`](crate::gpu::Runtime) |
//! | `device` | which cards there are |
//!
//! Only functions of CUDA 8.0 are linked, so that a program starts under the last driver for Fermi (390).

mod clock;
mod context;
mod device;
mod driver;
mod math_mode;
mod memory;
mod modules;
mod products;
mod status;

pub use device::{CudaBuilder, DeviceInfo};
pub use driver::Driver;
pub use math_mode::MathMode;

/// An NVIDIA GPU.
pub type Cuda = crate::gpu::Gpu<Driver>;

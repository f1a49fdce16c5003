//! What every CUDA device shares: buffers, the arithmetic of launches, and the traits over them.
//!
//! [`Gpu`] implements the crate's traits once, over a [`Runtime`]: a real card through the driver, or the same kernels
//! compiled as host C++ for tests. A crate with kernels of its own declares them with [`crate::gpu_module`] and implements
//! its trait for `Gpu<R>`.

mod backend;
mod blas;
mod buffer;
pub(crate) mod kernels;
mod launch;
mod module;
mod row_ops;
mod runtime;

use std::fmt;

pub use buffer::GpuBuffer;
pub use launch::{Argument, MOST_BLOCKS, Shape};
#[cfg(feature = "emulated")]
pub use module::HostKernel;
pub use module::{Kernel, Module};
pub use runtime::{BatchedProduct, Operand, Runtime, Strided};

/// A CUDA device over some runtime.
#[derive(Clone)]
pub struct Gpu<R: Runtime> {
    runtime: R,
}

impl<R: Runtime> fmt::Debug for Gpu<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gpu").field(&self.runtime).finish()
    }
}

impl<R: Runtime> Gpu<R> {
    /// A device over a runtime.
    pub fn over(runtime: R) -> Self {
        Self { runtime }
    }

    /// The runtime under this device.
    pub fn runtime(&self) -> &R {
        &self.runtime
    }
}

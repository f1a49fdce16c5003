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
mod products;
mod row_ops;
mod runtime;

use std::fmt;
use std::sync::{Arc, Mutex};

use products::Scratch;

use crate::Result;

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
    scratch: Arc<Mutex<Scratch<R>>>,
}

impl<R: Runtime> fmt::Debug for Gpu<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gpu").field(&self.runtime).finish()
    }
}

impl<R: Runtime> Gpu<R> {
    /// A device over a runtime, with scratch for its products: 64 KiB for each multiprocessor.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn over(runtime: R) -> Result<Self> {
        let scratch = Arc::new(Mutex::new(Scratch::new(&runtime)?));
        Ok(Self { runtime, scratch })
    }

    /// The runtime under this device.
    pub fn runtime(&self) -> &R {
        &self.runtime
    }
}

//! A card's context and its one stream of work.

use std::sync::Arc;

use cust::sys::{
    CUcontext, CUdevice, CUstream, cuCtxCreate_v2, cuCtxDestroy_v2, cuCtxSetCurrent, cuStreamCreate,
    cuStreamDestroy_v2, cuStreamSynchronize,
};

use super::status::driver;
use crate::Result;

/// Work on this stream does not wait for the default stream of other libraries in the process.
const NON_BLOCKING: u32 = 1;

/// A context with a stream. It is made current by every call that needs it, so handles may move between threads; it
/// lives as long as anything that was made in it.
#[derive(Debug)]
pub(super) struct Context {
    context: CUcontext,
    stream: CUstream,
}

// SAFETY: the driver's functions may be called from any thread once the context is current there, which `enter` sees to.
unsafe impl Send for Context {}
// SAFETY: as above; the driver orders calls on one stream itself.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(device: CUdevice) -> Result<Arc<Self>> {
        let mut context = std::ptr::null_mut();
        // SAFETY: plain calls; the handles are written before they are used.
        unsafe {
            driver("cuCtxCreate", cuCtxCreate_v2(&mut context, 0, device))?;
            let mut stream = std::ptr::null_mut();
            if let Err(error) = driver("cuStreamCreate", cuStreamCreate(&mut stream, NON_BLOCKING)) {
                cuCtxDestroy_v2(context);
                return Err(error);
            }
            Ok(Arc::new(Self { context, stream }))
        }
    }

    /// Makes this the calling thread's context and returns the stream.
    pub(super) fn enter(&self) -> Result<CUstream> {
        // SAFETY: the context lives until `self` is dropped.
        driver("cuCtxSetCurrent", unsafe { cuCtxSetCurrent(self.context) })?;
        Ok(self.stream)
    }

    pub(super) fn synchronize(&self) -> Result<()> {
        let stream = self.enter()?;
        // SAFETY: the stream lives until `self` is dropped.
        driver("cuStreamSynchronize", unsafe { cuStreamSynchronize(stream) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            // SAFETY: nothing else holds these handles any more: whatever was made in the context held this value.
            unsafe {
                cuStreamSynchronize(self.stream);
                cuStreamDestroy_v2(self.stream);
                cuCtxDestroy_v2(self.context);
            }
        }
    }
}

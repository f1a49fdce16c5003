//! Device memory.

use std::sync::Arc;

use cust::sys::{CUdeviceptr, cuMemAlloc_v2, cuMemFree_v2, cuMemsetD8Async, cuStreamSynchronize};

use super::context::Context;
use super::status::driver;
use crate::account::Account;
use crate::{Error, Result};

/// A piece of device memory.
#[derive(Debug)]
pub struct Memory {
    address: CUdeviceptr,
    bytes: usize,
    context: Arc<Context>,
    account: Arc<Account>,
}

impl Memory {
    pub(super) fn zeros(context: &Arc<Context>, account: &Arc<Account>, bytes: usize) -> Result<Self> {
        let stream = context.enter()?;
        account.add(bytes)?;
        let mut address = 0;
        // SAFETY: plain calls; the address is written before it is used.
        unsafe {
            if cuMemAlloc_v2(&mut address, bytes) != cust::sys::CUresult::CUDA_SUCCESS {
                account.remove(bytes);
                return Err(Error::OutOfMemory { bytes });
            }
            let memory = Self { address, bytes, context: Arc::clone(context), account: Arc::clone(account) };
            driver("cuMemsetD8Async", cuMemsetD8Async(address, 0, bytes, stream))?;
            Ok(memory)
        }
    }

    pub(super) fn address(&self) -> CUdeviceptr {
        self.address
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Ok(stream) = self.context.enter() {
            // SAFETY: the memory was allocated in this context; work that uses it was handed to the stream before.
            unsafe {
                cuStreamSynchronize(stream);
                cuMemFree_v2(self.address);
            }
        }
        self.account.remove(self.bytes);
    }
}

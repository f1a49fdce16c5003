//! The kernels on machines without a GPU: compiled as host C++ and launched by the same arithmetic, for tests.
//!
//! A block's threads are fibers that meet at the barrier, and run forward, backward or shuffled: a missing barrier shows in
//! one order if not in another. Buffers end at a page that may not be touched, so a kernel that leaves its buffer is stopped.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::account::Account;
use crate::gpu::{Argument, BatchedProduct, Gpu, HostKernel, Kernel, Operand, Runtime, Shape, Strided};
use crate::{Error, MemoryUse, Result};

/// A CUDA device that is emulated on the host.
pub type Emulated = Gpu<Emulator>;

/// As many as a large card has, for which products of many entries are still split.
const MULTIPROCESSORS: usize = 132;

unsafe extern "C" {
    fn fermi_blas_emulate(
        entry: HostKernel,
        arguments: *const *const c_void,
        blocks: u32,
        threads: u32,
        shared: u32,
        order: u32,
    ) -> c_int;
    fn fermi_blas_guarded_alloc(bytes: usize) -> *mut c_void;
    fn fermi_blas_guarded_free(memory: *mut c_void, bytes: usize);
}

/// The order in which blocks, and a block's threads between two barriers, run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Backward,
    /// In another order after every barrier.
    Shuffled,
}

/// The kernels as host code.
#[derive(Clone, Debug)]
pub struct Emulator {
    order: Order,
    account: Arc<Account>,
}

impl Gpu<Emulator> {
    /// A device whose threads run in this order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn emulated(order: Order) -> Result<Self> {
        Self::over(Emulator { order, account: Arc::default() })
    }
}

/// A piece of guarded host memory.
#[derive(Debug)]
pub struct Guarded {
    address: u64,
    bytes: usize,
    account: Arc<Account>,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: allocated by the other of the pair, with the same size.
        unsafe { fermi_blas_guarded_free(self.address as *mut c_void, self.bytes) };
        self.account.remove(self.bytes);
    }
}

/// Copies rows between two places of the host.
///
/// # Safety
/// Both places are live, and do not overlap.
unsafe fn copy_rows(source: Strided, target: Strided, width: usize, rows: usize) {
    for row in 0..rows {
        let from = (source.address as usize + row * source.pitch) as *const u8;
        let to = (target.address as usize + row * target.pitch) as *mut u8;
        // SAFETY: handed on from the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
    }
}

/// One entry of a product, its matrices at these addresses.
///
/// # Safety
/// The matrices are live.
unsafe fn multiply(product: &BatchedProduct, a: u64, b: u64, c: u64) {
    let BatchedProduct { m, k, n, alpha, beta, .. } = *product;
    let strides = |operand: Operand| match operand.transposed {
        true => (1, operand.row_stride),
        false => (operand.row_stride, 1),
    };
    let (a_strides, b_strides) = (strides(product.a), strides(product.b));
    let at = |address: u64, index: usize| (address as *mut f32).wrapping_add(index);
    for row in 0..m {
        for column in 0..n {
            // SAFETY: the caller vouches for the matrices.
            unsafe {
                let term = |i: usize| {
                    *at(a, row * a_strides.0 + i * a_strides.1)
                        * *at(b, i * b_strides.0 + column * b_strides.1)
                };
                let sum = alpha * (0..k).map(term).sum::<f32>();
                let value = at(c, row * product.c.row_stride + column);
                *value = if beta == 0.0 { sum } else { sum + beta * *value };
            }
        }
    }
}

impl Runtime for Emulator {
    type Memory = Guarded;
    type Span = ();

    fn alloc(&self, bytes: usize) -> Result<Guarded> {
        self.account.add(bytes)?;
        // SAFETY: a plain call; null means that there was no memory.
        let address = unsafe { fermi_blas_guarded_alloc(bytes) } as u64;
        if address == 0 {
            self.account.remove(bytes);
            return Err(Error::OutOfMemory { bytes });
        }
        Ok(Guarded { address, bytes, account: Arc::clone(&self.account) })
    }

    fn address(memory: &Guarded) -> u64 {
        memory.address
    }

    unsafe fn upload(&self, source: &[u8], target: Strided, width: usize, rows: usize) -> Result<()> {
        // SAFETY: the slice holds the rows without gaps; the caller vouches for the target.
        unsafe { copy_rows(Strided { address: source.as_ptr() as u64, pitch: width }, target, width, rows) };
        Ok(())
    }

    unsafe fn download(&self, source: Strided, target: &mut [u8], width: usize, rows: usize) -> Result<()> {
        let target = Strided { address: target.as_mut_ptr() as u64, pitch: width };
        // SAFETY: as above, the other way.
        unsafe { copy_rows(source, target, width, rows) };
        Ok(())
    }

    unsafe fn copy(&self, source: Strided, target: Strided, width: usize, rows: usize) -> Result<()> {
        // SAFETY: handed on from the caller.
        unsafe { copy_rows(source, target, width, rows) };
        Ok(())
    }

    unsafe fn launch(&self, kernel: Kernel, shape: Shape, arguments: &[Argument]) -> Result<()> {
        let pointers: Vec<*const c_void> =
            arguments.iter().map(|argument| std::ptr::from_ref(argument).cast()).collect();
        let entry = kernel.module.host[kernel.index];
        let Shape { blocks, threads, shared } = shape;
        // SAFETY: the caller vouches for the arguments.
        let status = unsafe {
            fermi_blas_emulate(entry, pointers.as_ptr(), blocks, threads, shared, self.order as u32)
        };
        let name = match status {
            0 => return Ok(()),
            1 => "a barrier was not met by all threads of a block".to_owned(),
            _ => return Err(Error::OutOfMemory { bytes: shared as usize }),
        };
        Err(Error::Device { library: "emulator", operation: kernel.name(), code: status, name })
    }

    unsafe fn gemm(&self, product: &BatchedProduct) -> Result<()> {
        for entry in 0..product.batch {
            let [a, b, c] = [product.a, product.b, product.c].map(|operand| operand.entry(entry).address);
            // SAFETY: handed on from the caller.
            unsafe { multiply(product, a, b, c) };
        }
        Ok(())
    }

    unsafe fn gemm_pointers(&self, product: &BatchedProduct, pointers: u64) -> Result<()> {
        let batch = product.batch;
        for entry in 0..batch {
            // SAFETY: the caller vouches for the pointers, and for the matrices there.
            unsafe {
                let [a, b, c] = [0, 1, 2].map(|part| *(pointers as *const u64).add(part * batch + entry));
                multiply(product, a, b, c);
            }
        }
        Ok(())
    }

    fn takes_pointers(&self) -> bool {
        true
    }

    fn multiprocessors(&self) -> usize {
        MULTIPROCESSORS
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> MemoryUse {
        self.account.memory()
    }

    fn span(&self, _: &'static str) {}
}

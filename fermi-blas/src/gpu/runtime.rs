//! What a device must offer under the traits.

use std::fmt::Debug;

use super::{Argument, Kernel, Shape};
use crate::{MemoryUse, Result};

/// Rows of bytes at a fixed distance.
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: usize,
}

/// An input of a product in the order of rows.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Address of the first element.
    pub address: u64,
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements from one batch entry to the next.
    pub batch_stride: usize,
    /// Entries in a row that share a matrix, at least 1: entry i lies `i / repeat` strides from the first.
    pub repeat: usize,
    /// Parts that every entry is cut into, at least 1: of part p of entry i the index is `i * parts + p`.
    pub parts: usize,
    /// Elements from one part to the next.
    pub part_stride: usize,
    /// Whether it enters transposed.
    pub transposed: bool,
}

impl Operand {
    /// One matrix of every entry, as it lies.
    #[must_use]
    pub fn new(address: u64, row_stride: usize, batch_stride: usize) -> Self {
        Self { address, row_stride, batch_stride, repeat: 1, parts: 1, part_stride: 0, transposed: false }
    }

    /// The matrix of one entry.
    #[must_use]
    pub fn entry(self, index: usize) -> Self {
        let (entry, part) = (index / self.parts, index % self.parts);
        let elements = entry / self.repeat * self.batch_stride + part * self.part_stride;
        Self { address: self.address + (elements * size_of::<f32>()) as u64, ..self }
    }

    /// The one distance between neighbouring entries of a batch, if there is one.
    pub(crate) fn stride(self, batch: usize) -> Option<usize> {
        match (self.parts, self.repeat) {
            (1, 1) => Some(self.batch_stride),
            (1, repeat) if repeat >= batch => Some(0),
            _ => None,
        }
    }
}

/// C_i = alpha · A_i · B_i + beta · C_i, float32, all matrices in the order of rows.
#[derive(Clone, Copy, Debug)]
pub struct BatchedProduct {
    /// Rows of C.
    pub m: usize,
    /// Columns of A.
    pub k: usize,
    /// Columns of C.
    pub n: usize,
    /// Entries of the batch.
    pub batch: usize,
    /// The left input.
    pub a: Operand,
    /// The right input.
    pub b: Operand,
    /// The output; never transposed.
    pub c: Operand,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the old C; 0 ignores it.
    pub beta: f32,
}

/// A CUDA device's services: memory, copies, launches, matrix products. Work is done in the order in which it is handed in.
pub trait Runtime: Clone + Debug + Send + Sync + 'static {
    /// A piece of device memory, released when dropped.
    type Memory: Debug + Send + Sync;

    /// Time that is being booked.
    type Span: Debug;

    /// `bytes` zeroed bytes; never called with 0.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    fn alloc(&self, bytes: usize) -> Result<Self::Memory>;

    /// Where a piece of memory begins.
    fn address(memory: &Self::Memory) -> u64;

    /// Copies `rows` rows of `width` bytes from the host, where they follow one another without gaps.
    ///
    /// # Safety
    /// The target lies in live memory of this device.
    ///
    /// # Errors
    /// Whatever the device reports.
    unsafe fn upload(&self, source: &[u8], target: Strided, width: usize, rows: usize) -> Result<()>;

    /// Copies `rows` rows of `width` bytes to the host, without gaps, and waits for them.
    ///
    /// # Safety
    /// The source lies in live memory of this device.
    ///
    /// # Errors
    /// Whatever the device reports.
    unsafe fn download(&self, source: Strided, target: &mut [u8], width: usize, rows: usize) -> Result<()>;

    /// Copies `rows` rows of `width` bytes on the device.
    ///
    /// # Safety
    /// Both lie in live memory of this device and do not overlap.
    ///
    /// # Errors
    /// Whatever the device reports.
    unsafe fn copy(&self, source: Strided, target: Strided, width: usize, rows: usize) -> Result<()>;

    /// Starts a kernel.
    ///
    /// # Safety
    /// As for [`super::Gpu::launch`], which also checks the shape.
    ///
    /// # Errors
    /// Whatever the device reports.
    unsafe fn launch(&self, kernel: Kernel, shape: Shape, arguments: &[Argument]) -> Result<()>;

    /// Matrix products, of each input either one matrix for all entries or one for each, at one distance.
    ///
    /// # Safety
    /// The matrices lie in live memory of this device, and C overlaps neither A nor B nor itself.
    ///
    /// # Errors
    /// Whatever the device reports.
    unsafe fn gemm(&self, product: &BatchedProduct) -> Result<()>;

    /// Matrix products of matrices that lie anywhere. At `pointers` are the addresses of all matrices of A, then of B, then
    /// of C; those of the product's operands are passed over.
    ///
    /// # Safety
    /// As for [`Runtime::gemm`]; the pointers lie in live memory of this device too, and [`Runtime::takes_pointers`].
    ///
    /// # Errors
    /// Whatever the device reports.
    unsafe fn gemm_pointers(&self, product: &BatchedProduct, pointers: u64) -> Result<()>;

    /// Whether there is [`Runtime::gemm_pointers`].
    fn takes_pointers(&self) -> bool;

    /// Multiprocessors, which work on a tile of a product each.
    fn multiprocessors(&self) -> usize;

    /// Waits until all work is done.
    ///
    /// # Errors
    /// Whatever that work failed with.
    fn synchronize(&self) -> Result<()>;

    /// Bytes that are held.
    fn memory(&self) -> MemoryUse;

    /// Starts to book time under `component`.
    fn span(&self, component: &'static str) -> Self::Span;
}

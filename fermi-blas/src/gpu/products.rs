//! Batches of matrix products: at one distance, by addresses, or split over the inner dimension.
//!
//! The library gives every multiprocessor tiles of the output. Few tiles leave most of a large card idle, however long the
//! inner dimension: so it is with attention's product of probabilities and values. Such a product is cut along the inner
//! dimension into parts, which are products of their own, and then summed.

use std::sync::PoisonError;

use super::blas::arguments;
use super::kernels::batch::{batch_pointers, sum_parts};
use super::{Argument, BatchedProduct, Gpu, Operand, Runtime, Shape};
use crate::Result;

/// Rows and columns of a tile, about: that of the library's kernels for large products.
const TILE: usize = 128;

/// Inner elements of a part at least; shorter ones would be reading and writing sums above all.
const SHORTEST: usize = 256;

/// Entries at most of a batch that is handed over by addresses.
const MOST_POINTERS: usize = 4096;

/// Threads of a block of these kernels.
const THREADS: u32 = 256;

/// Device memory for products under way. Work runs in the order in which it is handed in, so one is enough, as long as what
/// belongs to one product is handed in together.
#[derive(Debug)]
pub(super) struct Scratch<R: Runtime> {
    /// Addresses of a batch
    pointers: R::Memory,
    /// A tile of sums for each multiprocessor
    parts: R::Memory,
}

impl<R: Runtime> Scratch<R> {
    pub(super) fn new(runtime: &R) -> Result<Self> {
        let tiles = runtime.multiprocessors().max(1);
        Ok(Self {
            pointers: runtime.alloc(3 * MOST_POINTERS * size_of::<u64>())?,
            parts: runtime.alloc(tiles * TILE * TILE * size_of::<f32>())?,
        })
    }
}

impl Operand {
    /// The same from the inner index `start` on, cut there into `parts` of `length`. The inner dimension runs along the rows,
    /// or across them.
    fn cut(self, start: usize, parts: usize, length: usize, along_rows: bool) -> Self {
        let step = if along_rows { 1 } else { self.row_stride };
        let address = self.address + (start * step * size_of::<f32>()) as u64;
        Self { address, parts, part_stride: length * step, ..self }
    }
}

impl BatchedProduct {
    /// The terms of the inner indices from `start` on: `parts` times `length`, each part a product of its own.
    fn inner(&self, start: usize, parts: usize, length: usize) -> Self {
        let a = self.a.cut(start, parts, length, !self.a.transposed);
        let b = self.b.cut(start, parts, length, self.b.transposed);
        Self { k: length, batch: self.batch * parts, a, b, ..*self }
    }

    /// Into how many parts to cut it for that many multiprocessors.
    fn parts(&self, multiprocessors: usize) -> usize {
        let tiles = self.batch * self.m.div_ceil(TILE) * self.n.div_ceil(TILE);
        (multiprocessors / tiles).min(self.k / SHORTEST).max(1)
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).saturating_mul(b)
}

impl<R: Runtime> Gpu<R> {
    /// A batch of products, handed to the library as suits it best.
    ///
    /// # Safety
    /// As for [`Runtime::gemm`].
    ///
    /// # Errors
    /// Whatever the device reports.
    pub unsafe fn multiply(&self, product: &BatchedProduct) -> Result<()> {
        let BatchedProduct { m, n, batch, a, b, c, .. } = *product;
        if m == 0 || n == 0 || batch == 0 {
            return Ok(());
        }
        // The library splits single products itself.
        let splits = batch > 1 && self.runtime.takes_pointers();
        let parts = if splits { product.parts(self.runtime.multiprocessors()) } else { 1 };
        if parts == 1 && a.stride(batch).is_some() && b.stride(batch).is_some() {
            // SAFETY: handed on from the caller.
            return unsafe { self.runtime.gemm(product) };
        }
        if !self.runtime.takes_pointers() {
            for entry in 0..batch {
                let [a, b, c] = [a, b, c].map(|operand| operand.entry(entry));
                // SAFETY: handed on from the caller.
                unsafe { self.runtime.gemm(&BatchedProduct { batch: 1, a, b, c, ..*product })? };
            }
            return Ok(());
        }
        // Held until all is handed in.
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: handed on from the caller.
        unsafe {
            if parts > 1 {
                self.multiply_split(product, parts, &scratch)
            } else {
                self.multiply_by_pointers(product, &scratch)
            }
        }
    }

    /// # Safety
    /// As for [`Runtime::gemm`]; the sums of all parts fit the scratch.
    unsafe fn multiply_split(
        &self,
        product: &BatchedProduct,
        parts: usize,
        scratch: &Scratch<R>,
    ) -> Result<()> {
        let BatchedProduct { m, k, n, batch, c, mut beta, .. } = *product;
        // The library reads four elements at once where their addresses allow it.
        let length = k / parts / 4 * 4;
        let (address, size) = (R::address(&scratch.parts), m * n);
        let sums = Operand { parts, part_stride: size, ..Operand::new(address, n, parts * size) };
        // SAFETY: handed on from the caller.
        unsafe {
            let split = BatchedProduct { c: sums, beta: 0.0, ..product.inner(0, parts, length) };
            self.multiply_by_pointers(&split, scratch)?;
            if parts * length < k {
                let rest = product.inner(parts * length, 1, k - parts * length);
                self.multiply_by_pointers(&rest, scratch)?;
                beta = 1.0;
            }
            let arguments =
                arguments![address, c.address, batch, parts, m, n, c.row_stride, c.batch_stride, beta];
            self.launch(sum_parts, Shape::blocks(batch * m, THREADS), &arguments)
        }
    }

    /// # Safety
    /// As for [`Runtime::gemm`].
    unsafe fn multiply_by_pointers(&self, product: &BatchedProduct, scratch: &Scratch<R>) -> Result<()> {
        let BatchedProduct { batch, a, b, c, .. } = *product;
        let pointers = R::address(&scratch.pointers);
        let bytes = |elements: usize| elements * size_of::<f32>();
        // Pieces begin where an input does. What is cut into parts has no more entries than there are multiprocessors.
        let unit = least_common_multiple(a.repeat, b.repeat).saturating_mul(c.parts);
        let step = if batch <= MOST_POINTERS {
            batch
        } else if unit <= MOST_POINTERS {
            MOST_POINTERS / unit * unit
        } else {
            1
        };
        for first in (0..batch).step_by(step) {
            let [a, b, c] = [a, b, c].map(|operand| operand.entry(first));
            let piece = BatchedProduct { batch: step.min(batch - first), a, b, c, ..*product };
            let arguments = arguments![
                pointers,
                piece.batch / c.parts,
                c.parts,
                a.address,
                bytes(a.batch_stride),
                a.repeat,
                bytes(a.part_stride),
                b.address,
                bytes(b.batch_stride),
                b.repeat,
                bytes(b.part_stride),
                c.address,
                bytes(c.batch_stride),
                bytes(c.part_stride),
            ];
            // SAFETY: handed on from the caller; there is room for the pointers of so many entries. The addresses stand until
            // the product has read them.
            unsafe {
                self.launch(batch_pointers, Shape::threads(piece.batch, THREADS), &arguments)?;
                self.runtime.gemm_pointers(&piece, pointers)?;
            }
        }
        Ok(())
    }
}

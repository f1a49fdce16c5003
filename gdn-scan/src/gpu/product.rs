//! Products of the chunks' matrices, all entries by one call.

use fermi_blas::gpu::{BatchedProduct, Gpu, Operand, Runtime};

use crate::Result;

/// Entries of one call at most: the library may lay them out along a grid's dimension, which ends there on old cards.
const MOST_ENTRIES: usize = 65_535;

/// One matrix of every entry: rows of `row_stride` values, entries of `batch_stride` values.
pub(super) fn entries(address: u64, row_stride: usize, batch_stride: usize) -> Operand {
    Operand::new(address, row_stride, batch_stride)
}

/// The same, transposed.
pub(super) fn transposed(operand: Operand) -> Operand {
    Operand { transposed: true, ..operand }
}

/// C = A · B for `batch` entries.
///
/// # Safety
/// All matrices lie in live memory of the device, and the entries of C overlap nothing.
pub(super) unsafe fn multiply<R: Runtime>(
    device: &Gpu<R>,
    (m, k, n): (usize, usize, usize),
    batch: usize,
    [a, b, c]: [Operand; 3],
) -> Result<()> {
    for first in (0..batch).step_by(MOST_ENTRIES) {
        let batch = MOST_ENTRIES.min(batch - first);
        let [a, b, c] = [a, b, c].map(|operand| Operand {
            address: operand.address + (first * operand.batch_stride * size_of::<f32>()) as u64,
            ..operand
        });
        let product = BatchedProduct { m, k, n, batch, a, b, c, alpha: 1.0, beta: 0.0 };
        // SAFETY: handed on from the caller.
        unsafe { device.multiply(&product) }?;
    }
    Ok(())
}

//! Forward substitution with a chunk's unit lower triangular matrix: (I + A) δ = R.
//!
//! A was computed before: a row of the solution costs no products of tokens, only A's row times the rows already solved.
//! Those of earlier blocks come by one matrix product, so that the sequential part stays within a block.

use pulp::{Simd, WithSimd};

use super::chunk::Chunk;
use super::matmul::{LANES, Product, Rows, padded};

/// Turns the right-hand sides in `reads` into δ.
pub(super) fn solve(chunk: &mut Chunk<'_>) {
    let count = chunk.count;
    let (stride, value_stride) = (chunk.layout.chunk_stride, chunk.layout.value_stride);
    let columns = padded(chunk.layout.shape.value_width());
    for first in (0..count).step_by(LANES) {
        let rows = LANES.min(count - first);
        let (solved, block) = chunk.reads.split_at_mut(first * value_stride);
        let a = Rows { values: &chunk.scores[first * stride..], stride };
        if first > 0 {
            Product {
                size: (rows, first, columns),
                a,
                a_transposed: false,
                b: Rows { values: solved, stride: value_stride },
                c: block,
                c_stride: value_stride,
                alpha: -1.0,
                beta: 1.0,
            }
            .run(chunk.arch);
        }
        for row in 1..rows {
            let (above, row_and_below) = block.split_at_mut(row * value_stride);
            chunk.arch.dispatch(Substitute {
                coefficients: &a.values[row * stride + first..][..row],
                above: Rows { values: above, stride: value_stride },
                row: &mut row_and_below[..columns],
            });
        }
    }
}

/// row −= Σ_j coefficient_j · above_j
struct Substitute<'a> {
    coefficients: &'a [f32],
    above: Rows<'a>,
    row: &'a mut [f32],
}

impl WithSimd for Substitute<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let columns = self.row.len();
        let (row, _) = S::as_mut_simd_f32s(self.row);
        for (coefficient, above) in self.coefficients.iter().zip(self.above.values.chunks(self.above.stride))
        {
            let coefficient = simd.splat_f32s(-coefficient);
            let (above, _) = S::as_simd_f32s(&above[..columns]);
            for (row, above) in row.iter_mut().zip(above) {
                *row = simd.mul_add_e_f32s(coefficient, *above, *row);
            }
        }
    }
}

//! Transposing a chunk's keys.

use pulp::{Simd, WithSimd};

use super::matmul::Rows;

/// Side of the blocks that compilers turn into shuffles of vectors.
const SIDE: usize = 4;

/// `to[j][i] = from[i][j]`
///
/// # Shapes
/// from `[rows, columns]`, to `[columns, rows]`
pub(super) struct Transpose<'a> {
    pub(super) size: (usize, usize),
    pub(super) from: Rows<'a>,
    pub(super) to: &'a mut [f32],
    pub(super) to_stride: usize,
}

impl Transpose<'_> {
    #[inline(always)]
    fn block(&mut self, row: usize, column: usize) {
        let from: [[f32; SIDE]; SIDE] = std::array::from_fn(|r| {
            let from = &self.from.values[(row + r) * self.from.stride + column..];
            from.first_chunk().copied().unwrap_or_default()
        });
        let to: [[f32; SIDE]; SIDE] = std::array::from_fn(|c| std::array::from_fn(|r| from[r][c]));
        for (c, to) in to.iter().enumerate() {
            self.to[(column + c) * self.to_stride + row..][..SIDE].copy_from_slice(to);
        }
    }

    #[inline(always)]
    fn single(&mut self, row: usize, column: usize) {
        self.to[column * self.to_stride + row] = self.from.values[row * self.from.stride + column];
    }
}

impl WithSimd for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) {
        let (rows, columns) = self.size;
        let (whole_rows, whole_columns) = (rows / SIDE * SIDE, columns / SIDE * SIDE);
        for column in (0..whole_columns).step_by(SIDE) {
            for row in (0..whole_rows).step_by(SIDE) {
                self.block(row, column);
            }
        }
        for row in 0..rows {
            let first = if row < whole_rows { whole_columns } else { 0 };
            for column in first..columns {
                self.single(row, column);
            }
        }
    }
}

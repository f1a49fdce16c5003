//! Products of matrices that lie in a core's own cache.
//!
//! The matrices of one chunk are too small for a library's packing and threads to pay: here a tile of C stays in vector
//! registers while a column of A, spread over the lanes, meets a row of B.

use pulp::{Arch, Simd, WithSimd};

/// Row strides are multiples of this: the widest vector, so that no kernel needs a tail of columns.
pub(super) const LANES: usize = 16;

/// Columns that are computed for `n` wanted ones.
pub(super) fn padded(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// The row stride for `n` columns: an odd multiple of [`LANES`], so that the rows of a panel fall into different cache sets.
pub(super) fn row_stride(n: usize) -> usize {
    let columns = padded(n);
    if (columns / LANES).is_multiple_of(2) && columns > 0 { columns + LANES } else { columns }
}

/// A matrix to read, rows apart by a fixed stride.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
}

/// Multiplies each row by its own factor.
pub(super) struct ScaleRows<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) stride: usize,
    pub(super) factors: &'a [f32],
}

impl WithSimd for ScaleRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (row, factor) in self.values.chunks_mut(self.stride).zip(self.factors) {
            row.iter_mut().for_each(|x| *x *= factor);
        }
    }
}

/// C = alpha · A · B + beta · C.
///
/// # Shapes
/// A `[m, k]`, or `[k, m]` when transposed; B `[k, n]`, C `[m, n]` with n a multiple of [`LANES`]
pub(super) struct Product<'a> {
    pub(super) size: (usize, usize, usize),
    pub(super) a: Rows<'a>,
    pub(super) a_transposed: bool,
    pub(super) b: Rows<'a>,
    pub(super) c: &'a mut [f32],
    pub(super) c_stride: usize,
    pub(super) alpha: f32,
    pub(super) beta: f32,
}

impl Product<'_> {
    /// Computes it with the widest vectors that this processor has.
    pub(super) fn run(self, arch: Arch) {
        debug_assert!(self.size.2.is_multiple_of(LANES));
        arch.dispatch(self);
    }

    /// Panels of `VECTORS` vectors in tiles of `ROWS` rows, from `column` on, as long as they fit.
    #[inline(always)]
    fn panels<S: Simd, const ROWS: usize, const VECTORS: usize, const TRANSPOSED: bool>(
        &mut self,
        simd: S,
        mut column: usize,
    ) -> usize {
        let width = VECTORS * S::F32_LANES;
        while column + width <= self.size.2 {
            self.panel::<S, ROWS, VECTORS, TRANSPOSED>(simd, column);
            column += width;
        }
        column
    }

    /// All rows of `VECTORS` vectors of columns: the panel of B stays in the first-level cache meanwhile.
    #[inline(always)]
    fn panel<S: Simd, const ROWS: usize, const VECTORS: usize, const TRANSPOSED: bool>(
        &mut self,
        simd: S,
        column: usize,
    ) {
        let m = self.size.0;
        let mut row = 0;
        while row + ROWS <= m {
            self.tile::<S, ROWS, VECTORS, TRANSPOSED>(simd, row, column);
            row += ROWS;
        }
        while row < m {
            self.tile::<S, 1, VECTORS, TRANSPOSED>(simd, row, column);
            row += 1;
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const ROWS: usize, const VECTORS: usize, const TRANSPOSED: bool>(
        &mut self,
        simd: S,
        row: usize,
        column: usize,
    ) {
        let k = self.size.1;
        let width = VECTORS * S::F32_LANES;
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
        if k > 0 {
            let b = self.b.values[column..].chunks(self.b.stride).take(k);
            if TRANSPOSED {
                let a = self.a.values[row..].chunks(self.a.stride);
                for (a, b) in a.zip(b) {
                    let a: &[f32; ROWS] = a.first_chunk().unwrap_or(&[0.0; ROWS]);
                    rank_one::<S, ROWS, VECTORS>(simd, a, &b[..width], &mut sums);
                }
            } else {
                let a: [&[f32]; ROWS] =
                    std::array::from_fn(|r| &self.a.values[(row + r) * self.a.stride..][..k]);
                for (p, b) in b.enumerate() {
                    let a = std::array::from_fn(|r| a[r][p]);
                    rank_one::<S, ROWS, VECTORS>(simd, &a, &b[..width], &mut sums);
                }
            }
        }
        let (alpha, beta) = (simd.splat_f32s(self.alpha), simd.splat_f32s(self.beta));
        for (r, sums) in sums.iter().enumerate() {
            let c = &mut self.c[(row + r) * self.c_stride + column..][..width];
            let (c, _) = S::as_mut_simd_f32s(c);
            for (c, sum) in c.iter_mut().zip(sums) {
                let product = simd.mul_f32s(alpha, *sum);
                *c = if self.beta == 0.0 { product } else { simd.mul_add_e_f32s(beta, *c, product) };
            }
        }
    }
}

/// sums += a bᵀ
#[inline(always)]
fn rank_one<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    a: &[f32; ROWS],
    b: &[f32],
    sums: &mut [[S::f32s; VECTORS]; ROWS],
) {
    let (b, _) = S::as_simd_f32s(b);
    let b: [S::f32s; VECTORS] = std::array::from_fn(|v| b[v]);
    for r in 0..ROWS {
        let a = simd.splat_f32s(a[r]);
        for v in 0..VECTORS {
            sums[r][v] = simd.mul_add_e_f32s(a, b[v], sums[r][v]);
        }
    }
}

impl WithSimd for Product<'_> {
    type Output = ();

    /// The tiles measured fastest where 32 vector registers hold their sums, then smaller ones for what is left; with
    /// fewer registers, those that leave room for B and A.
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut column = 0;
        match (S::REGISTER_COUNT >= 32, self.a_transposed) {
            (true, false) => {
                column = self.panels::<S, 4, 4, false>(simd, column);
                column = self.panels::<S, 8, 2, false>(simd, column);
                self.panels::<S, 8, 1, false>(simd, column);
            }
            (true, true) => {
                column = self.panels::<S, 8, 3, true>(simd, column);
                column = self.panels::<S, 8, 2, true>(simd, column);
                self.panels::<S, 8, 1, true>(simd, column);
            }
            (false, false) => {
                column = self.panels::<S, 4, 2, false>(simd, column);
                self.panels::<S, 4, 1, false>(simd, column);
            }
            (false, true) => {
                column = self.panels::<S, 4, 2, true>(simd, column);
                self.panels::<S, 4, 1, true>(simd, column);
            }
        }
    }
}

//! Batched products of few rows: one token's attention, where B is a cache of keys or values that is read once.
//!
//! The product library first copies B into its own order, which for few rows costs more than the product.

use super::few_rows::{BLOCK, dots};
use super::gemm::Product;
use super::instructions::{Isa, Kernel, LANES, prefetch};

/// Rows of A at most.
pub(super) const FEW_ROWS: usize = 8;

/// Columns of C that are one piece of work.
pub(super) const PIECE: usize = 128;

/// Rows of B by which it is asked for ahead: rows of a head lie apart, where the processor does not guess them.
const ROWS_AHEAD: usize = 4;

/// Columns `first .. first + count` of C.
pub(super) struct Piece {
    pub(super) product: Product,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Piece {
    /// Whether this is for such a product: few rows, and rows of A and of B (or of its transpose) without gaps.
    pub(super) fn fits(product: &Product) -> bool {
        let (a, b) = (product.a_strides, product.b_strides);
        product.m <= FEW_ROWS && (a.1 == 1 || product.k == 1) && (b.0 == 1 || b.1 == 1)
    }
}

impl Kernel for Piece {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for row in (0..self.product.m).step_by(BLOCK) {
            let rows = BLOCK.min(self.product.m - row);
            if self.product.b_strides.0 == 1 { self.dots::<I>(row, rows) } else { self.sums::<I>(row, rows) }
        }
    }
}

impl Piece {
    /// Row `row` of A.
    #[inline(always)]
    fn a(&self, row: usize) -> &[f32] {
        let Product { k, a, a_strides, .. } = self.product;
        // SAFETY: a row of the view, which has no gaps, see `fits`; whoever made the product vouches for it.
        unsafe { std::slice::from_raw_parts(a.wrapping_add(row * a_strides.0), k) }
    }

    /// This piece of a row of C.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the pieces of C are disjoint, and each is walked row by row")]
    fn c(&self, row: usize) -> &mut [f32] {
        let Product { c, c_row_stride, .. } = self.product;
        // SAFETY: as above; every piece has columns of its own.
        unsafe { std::slice::from_raw_parts_mut(c.wrapping_add(row * c_row_stride + self.first), self.count) }
    }

    /// C = alpha · A · Bᵀ + beta · C, by dot products with the rows of B.
    #[inline(always)]
    fn dots<I: Isa>(&self, row: usize, rows: usize) {
        let Product { k, b, b_strides, alpha, beta, .. } = self.product;
        // A short block repeats its last row, and drops what comes of it.
        let x: [&[f32]; BLOCK] = std::array::from_fn(|i| self.a(row + i.min(rows - 1)));
        for column in 0..self.count {
            // SAFETY: a row of the view without gaps.
            let key =
                unsafe { std::slice::from_raw_parts(b.wrapping_add((self.first + column) * b_strides.1), k) };
            let (chunks, rest) = key.as_chunks::<LANES>();
            let ahead = |chunk: usize| {
                prefetch(chunks[chunk].as_ptr().wrapping_add(ROWS_AHEAD * b_strides.1));
                chunks[chunk]
            };
            let sums = dots::<I, f32>(x, chunks.len(), ahead, rest, |w| w);
            for (i, sum) in sums.into_iter().enumerate().take(rows) {
                let c = &mut self.c(row + i)[column];
                let product = alpha * sum;
                *c = if beta == 0.0 { product } else { I::mul_add(beta, *c, product) };
            }
        }
    }

    /// C = alpha · A · B + beta · C, by sums of the rows of B.
    #[inline(always)]
    fn sums<I: Isa>(&self, row: usize, rows: usize) {
        let Product { b, b_strides, alpha, beta, .. } = self.product;
        // Four names, as in `dots`: of an array the compiler makes gathers.
        let [mut sum_a, mut sum_b, mut sum_c, mut sum_d] = [[0.0; PIECE]; BLOCK];
        let x: [&[f32]; BLOCK] = std::array::from_fn(|i| self.a(row + i.min(rows - 1)));
        let [xa, xb, xc, xd] = x.map(|x| x.iter());
        for (value, (((xa, xb), xc), xd)) in xa.zip(xb).zip(xc).zip(xd).enumerate() {
            let ahead = b.wrapping_add((value + ROWS_AHEAD) * b_strides.0 + self.first);
            (0..self.count).step_by(LANES).for_each(|column| prefetch(ahead.wrapping_add(column)));
            // SAFETY: a part of a row of the view.
            let values = unsafe {
                std::slice::from_raw_parts(b.wrapping_add(value * b_strides.0 + self.first), self.count)
            };
            add_scaled::<I>(&mut sum_a, values, *xa);
            add_scaled::<I>(&mut sum_b, values, *xb);
            add_scaled::<I>(&mut sum_c, values, *xc);
            add_scaled::<I>(&mut sum_d, values, *xd);
        }
        let sums = [sum_a, sum_b, sum_c, sum_d];
        for (i, sums) in sums.iter().enumerate().take(rows) {
            for (c, sum) in self.c(row + i).iter_mut().zip(sums) {
                let product = alpha * sum;
                *c = if beta == 0.0 { product } else { I::mul_add(beta, *c, product) };
            }
        }
    }
}

/// sums += factor · values, for as many values as there are.
#[inline(always)]
fn add_scaled<I: Isa>(sums: &mut [f32; PIECE], values: &[f32], factor: f32) {
    if let Ok(values) = <&[f32; PIECE]>::try_from(values) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = I::mul_add(factor, *value, *sum);
        }
    } else {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = I::mul_add(factor, *value, *sum);
        }
    }
}

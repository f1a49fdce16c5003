//! Weights times several activation rows: each weight is read and widened once for four rows.
//!
//! For few rows, expanding the whole weight and copying it into the product library's own order costs more than the product.

use super::dequantize::widen;
use super::gemv::accumulate;
use super::instructions::{Isa, Kernel, LANES};
use super::lanes;
use crate::{Cpu, Q8_GROUP, SharedRows, View, WeightView};

/// Activation rows that are worked on at once: enough independent sums to hide the latency of a multiply-add.
pub(super) const BLOCK: usize = 4;

/// A piece of a product: y[t, first + i] = row (first + i) · x[t] for `count` rows of the weight and all rows of x.
pub(super) struct FewRows<'a> {
    pub(super) weight: WeightView<'a, Cpu>,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) x: View<'a, Cpu>,
    /// Nobody else may write these columns meanwhile.
    pub(super) y: &'a SharedRows<'a, f32>,
}

impl Kernel for FewRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for token in (0..self.x.rows()).step_by(BLOCK) {
            self.block::<I>(token);
        }
    }
}

impl FewRows<'_> {
    /// Up to [`BLOCK`] rows of x from `token` on, against all rows of the weight.
    #[inline(always)]
    fn block<I: Isa>(&self, token: usize) {
        let tokens = BLOCK.min(self.x.rows() - token);
        // A short block repeats its last row, and drops what comes of it.
        let x: [&[f32]; BLOCK] = std::array::from_fn(|t| self.x.row(token + t.min(tokens - 1)));
        for row in self.first..self.first + self.count {
            let sums = match self.weight {
                WeightView::F32(weight) => {
                    let (chunks, rest) = weight.row(row).as_chunks::<LANES>();
                    dots::<I, _>(x, chunks.len(), |chunk| chunks[chunk], rest, |w| w)
                }
                WeightView::Bf16(weight) => {
                    let (chunks, rest) = weight.row(row).as_chunks::<LANES>();
                    dots::<I, _>(x, chunks.len(), |chunk| chunks[chunk].map(widen), rest, widen)
                }
                WeightView::Q8 { codes, scales } => {
                    let (chunks, rest) = codes.row(row).as_chunks::<LANES>();
                    let scales = scales.row(row);
                    let last = scales.last().copied().unwrap_or_default();
                    let values = |chunk: usize| {
                        let scale = scales[chunk / (Q8_GROUP / LANES)];
                        chunks[chunk].map(|code| f32::from(code) * scale)
                    };
                    dots::<I, _>(x, chunks.len(), values, rest, |code| f32::from(code) * last)
                }
            };
            for (t, sum) in sums.into_iter().enumerate().take(tokens) {
                // SAFETY: whoever made this piece promises that nobody else writes these columns.
                unsafe { self.y.write(0, token + t, row, sum) };
            }
        }
    }
}

/// The products of one weight row with four activation rows: `count` whole chunks of it, and the rest.
#[inline(always)]
pub(super) fn dots<I: Isa, W: Copy>(
    x: [&[f32]; BLOCK],
    count: usize,
    values: impl Fn(usize) -> [f32; LANES],
    rest: &[W],
    value: impl Fn(W) -> f32,
) -> [f32; BLOCK] {
    // Four names instead of an array of sums: the compiler keeps those in registers.
    let [mut a, mut b, mut c, mut d] = [[0.0; LANES]; BLOCK];
    let [xa, xb, xc, xd] = x.map(|x| x.as_chunks::<LANES>().0[..count].iter());
    for (chunk, (((xa, xb), xc), xd)) in xa.zip(xb).zip(xc).zip(xd).enumerate() {
        let weights = values(chunk);
        accumulate::<I, f32>(&mut a, &weights, xa, |w| w);
        accumulate::<I, f32>(&mut b, &weights, xb, |w| w);
        accumulate::<I, f32>(&mut c, &weights, xc, |w| w);
        accumulate::<I, f32>(&mut d, &weights, xd, |w| w);
    }
    let mut sums = [a, b, c, d];
    for (sums, x) in sums.iter_mut().zip(x) {
        for ((sum, w), x) in sums.iter_mut().zip(rest).zip(&x[count * LANES..]) {
            *sum = I::mul_add(value(*w), *x, *sum);
        }
    }
    sums.map(lanes::total)
}

//! Sums and maxima over slices, in [`LANES`] running values side by side.
//!
//! That is what vector registers do well, and it is more accurate than one running sum: each lane adds a sixteenth of the
//! terms.

use super::instructions::{Isa, LANES};

/// The sum of all lanes, in pairs.
#[inline(always)]
pub(super) fn total(lanes: [f32; LANES]) -> f32 {
    fold(lanes, |a, b| a + b)
}

#[inline(always)]
fn fold(mut lanes: [f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The larger value; the first when the second is NaN. This order is one instruction.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// Σ f(x), each term added by `add(sum, x)`.
#[inline(always)]
pub(super) fn sum_by(x: &[f32], add: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = add(lanes[lane], chunk[lane]);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = add(*lane, *x);
    }
    total(lanes)
}

/// Σ x
#[inline(always)]
pub(super) fn sum(x: &[f32]) -> f32 {
    sum_by(x, |sum, x| sum + x)
}

/// Σ x²
#[inline(always)]
pub(super) fn sum_of_squares<I: Isa>(x: &[f32]) -> f32 {
    sum_by(x, |sum, x| I::mul_add(x, x, sum))
}

/// The largest value of x · scale; NaN is passed over, and −∞ stands for nothing.
#[inline(always)]
pub(super) fn max_scaled(x: &[f32], scale: f32) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane] * scale);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = larger(*lane, x * scale);
    }
    fold(lanes, larger)
}

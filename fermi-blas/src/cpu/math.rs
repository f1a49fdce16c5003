//! Elementary functions without branches, so that loops over them become vectors.
//!
//! Errors are measured against float64 in this module's tests: [`exp`] 1 unit in the last place, [`erf`] 2.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

use super::instructions::Isa;
use crate::Activation;

/// 1.5 · 2^23: added to a value below 2^22, it rounds it to an integer that then stands in the lowest bits.
pub(super) const ROUND: f32 = 12_582_912.0;

/// ln 2 in two parts; the first has so few bits that its products with the exponents are exact.
const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];

/// (exp(r) − 1 − r) / r² for |r| ≤ ln 2 / 2, least largest error, lowest power first.
const EXP: [f32; 6] = [0.5, 0.166_666_66, 0.041_666_295, 0.008_333_498, 0.001_394_476, 0.000_197_902_48];

/// erf(x) / x − 1 in powers of x² for |x| ≤ 1: less the 1, its rounding weighs an eighth.
const ERF_NEAR: [f32; 7] = [
    0.128_379_17,
    -0.376_126_26,
    0.112_835_854,
    -0.026_853_811,
    0.005_188_327_7,
    -0.000_801_019_25,
    0.000_078_538_58,
];

/// ln(1 − erf(x)) in powers of x for 1 ≤ x ≤ 4.
const ERF_FAR: [f32; 7] = [
    -0.000_353_708_92,
    -1.127_04,
    -0.638_225_6,
    -0.103_037_43,
    0.021_805_352,
    -0.002_939_615_6,
    0.000_185_574_9,
];

/// Σ cᵢ xⁱ
#[inline(always)]
fn polynomial<I: Isa, const N: usize>(coefficients: [f32; N], x: f32) -> f32 {
    let mut sum = coefficients[N - 1];
    for index in (0..N - 1).rev() {
        sum = I::mul_add(sum, x, coefficients[index]);
    }
    sum
}

/// Below this e^x is no normal float32.
const LEAST: f32 = -87.336_54;

/// exp(x): 0 where the result is no normal float32 (denormal arithmetic takes a hundred times as long), infinity above its
/// range; NaN stays NaN.
#[inline(always)]
pub fn exp<I: Isa>(x: f32) -> f32 {
    // Comparisons that are false for NaN hand it on.
    let tiny = x < LEAST;
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if tiny { LEAST } else { x };
    let shifted = I::mul_add(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = I::mul_add(n, -LN_2[1], I::mul_add(n, -LN_2[0], x));
    let power = I::mul_add(polynomial::<I, 6>(EXP, r), r * r, r) + 1.0;
    // 2^n in two factors, since n may lie outside the exponents of normal numbers.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
    let half = n >> 1;
    let scale = |n: i32| f32::from_bits((n.wrapping_add(127) << 23).cast_unsigned());
    let result = power * scale(half) * scale(n.wrapping_sub(half));
    if tiny { 0.0 } else { result }
}

/// The error function; NaN stays NaN.
#[inline(always)]
pub fn erf<I: Isa>(x: f32) -> f32 {
    let magnitude = x.abs();
    let near = I::mul_add(polynomial::<I, 7>(ERF_NEAR, x * x), magnitude, magnitude);
    // 1 − erf(4) is below half a unit in the last place of 1.
    let clamped = if magnitude > 4.0 { 4.0 } else { magnitude };
    let far = 1.0 - exp::<I>(polynomial::<I, 7>(ERF_FAR, clamped));
    let y = if magnitude < 1.0 { near } else { far };
    y.copysign(x)
}

/// 1 / (1 + exp(−x))
#[inline(always)]
pub fn sigmoid<I: Isa>(x: f32) -> f32 {
    1.0 / (1.0 + exp::<I>(-x))
}

/// x · sigmoid(x)
#[inline(always)]
pub fn silu<I: Isa>(x: f32) -> f32 {
    x / (1.0 + exp::<I>(-x))
}

/// The tanh form of GELU. x/2 · (1 + tanh(u)) is x · sigmoid(2u), which loses nothing where tanh is near −1.
#[inline(always)]
pub fn gelu_tanh<I: Isa>(x: f32) -> f32 {
    // 2 · √(2/π)
    let u = std::f32::consts::SQRT_2 * std::f32::consts::FRAC_2_SQRT_PI * I::mul_add(0.044_715 * x * x, x, x);
    x / (1.0 + exp::<I>(-u))
}

/// GELU by the error function.
#[inline(always)]
pub fn gelu_erf<I: Isa>(x: f32) -> f32 {
    0.5 * x * (1.0 + erf::<I>(x * FRAC_1_SQRT_2))
}

/// f(x) for every value of a slice.
#[inline(always)]
pub(super) fn apply<I: Isa>(activation: Activation, values: &mut [f32]) {
    #[inline(always)]
    fn each(values: &mut [f32], f: impl Fn(f32) -> f32) {
        for x in values {
            *x = f(*x);
        }
    }
    match activation {
        Activation::Silu => each(values, silu::<I>),
        Activation::Sigmoid => each(values, sigmoid::<I>),
        Activation::GeluTanh => each(values, gelu_tanh::<I>),
        Activation::GeluErf => each(values, gelu_erf::<I>),
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests;

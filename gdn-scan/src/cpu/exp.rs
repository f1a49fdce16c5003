//! The exponential function in a form that compilers turn into vector code.

/// Below this eˣ is no normal float32.
const LEAST: f32 = -87.336_54;

/// Above this x is taken as if it were this large.
const LARGEST: f32 = 87.0;

/// 1.5 · 2²³: adding it rounds a small number to an integer, which then stands in the lowest bits.
const ROUND: f32 = 12_582_912.0;

/// ln 2 in two parts, the first with so few bits that its products with small integers are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// eˣ within two units in the last place, 0 where that is no normal float32 (denormal arithmetic takes many times as long);
/// NaN stays NaN.
///
/// With n = x / ln 2 rounded and r = x − n ln 2, eˣ = 2ⁿ (1 + r + r² p(r)), |r| ≤ ln 2 / 2, p of degree 5.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let bounded = if x < LEAST { LEAST } else { x };
    let bounded = if bounded > LARGEST { LARGEST } else { bounded };
    let shifted = bounded * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = bounded - n * LN_2_HIGH - n * LN_2_LOW;
    let mut p = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        p = p * r + coefficient;
    }
    let mantissa = r * r * p + r + 1.0;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < LEAST { 0.0 } else { mantissa * power }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn agrees_with_the_library_within_two_units() {
        for i in -873_365..=870_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 2.4e-7, "exp({x}) is off by {error:e}");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e4), 0.0);
        assert_eq!(exp(-100.0), 0.0);
        assert!(exp(1e4).is_finite());
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn no_result_is_denormal() {
        for i in 0..200_000 {
            let y = exp(-86.0 - i as f32 * 1e-4);
            assert!(y == 0.0 || y.is_normal(), "{y:e}");
        }
    }
}

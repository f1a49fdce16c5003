//! How far a result may lie from its float64 reference, and why.
//!
//! Every bound follows from the arithmetic that a backend is allowed: float32 values and sums, in any order. None is
//! loosened by a switch.

/// Half the distance between 1 and the next float32: the error of one rounding, relative.
pub const ROUNDING: f64 = f32::EPSILON as f64 / 2.0;

/// A product's error, relative to Σ|aᵢbᵢ|: roundings of a sum in any order grow like √k, and four more stand for the scale
/// and the final rounding.
pub fn product(k: usize) -> f64 {
    ROUNDING * (4.0 + 2.0 * (k as f64).sqrt())
}

/// A norm's error, relative to the largest magnitude of the row: a sum of squares, a root, and three products. The
/// mean that a layer norm subtracts first is rounded too, so its bound grows with |mean| / deviation, about one here.
pub const NORM: f64 = 16.0 * ROUNDING;

/// A softmax's error, relative: the argument x · scale is rounded before it reaches the exponential, which turns that
/// absolute error (arguments stay below 32) into a relative one; the sum adds a few roundings.
pub const SOFTMAX: f64 = 48.0 * ROUNDING;

/// An activation's error, relative to max(|y|, |x|): a few units in the last place of the exponential. Where GELU's tail
/// nearly cancels, 1 + tanh or 1 + erf is rounded at 1, hence the |x|.
pub const ACTIVATION: f64 = 8.0 * ROUNDING;

/// A rotation's error, relative to the pair's length: two products and a sum.
pub const ROTARY: f64 = 4.0 * ROUNDING;

/// One sum or product: its own rounding.
pub const ELEMENTWISE: f64 = ROUNDING * 1.01;

/// The largest |actual − expected|, relative to the largest |expected|; NaN counts as infinite, equal values as exact.
pub fn largest_error(actual: &[f32], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    let error = actual.iter().zip(expected).map(|(actual, expected)| difference(*actual, *expected));
    let error = error.fold(0.0f64, f64::max);
    if error == 0.0 { 0.0 } else { error / largest.max(f64::MIN_POSITIVE) }
}

/// |actual − expected|: 0 for equal infinities, infinite when either is NaN.
fn difference(actual: f32, expected: f64) -> f64 {
    let actual = f64::from(actual);
    let difference = (actual - expected).abs();
    if actual == expected {
        0.0
    } else if difference.is_nan() {
        f64::INFINITY
    } else {
        difference
    }
}

/// Checks that `actual` lies within `tolerance` of `expected`, relative to the largest magnitude of `expected`.
///
/// # Panics
/// When it does not, or when the lengths differ.
#[track_caller]
pub fn assert_close(what: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}: length");
    let error = largest_error(actual, expected);
    assert!(error <= tolerance, "{what}: error {error:.3e} is above {tolerance:.3e}");
}

/// Checks every value by itself: |actual − expected| ≤ tolerance · scale.
///
/// # Panics
/// When one lies outside, or when the lengths differ.
#[track_caller]
pub fn assert_near(what: &str, actual: &[f32], expected: &[f64], scales: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}: length");
    assert_eq!(actual.len(), scales.len(), "{what}: length of scales");
    for (index, ((actual, expected), scale)) in actual.iter().zip(expected).zip(scales).enumerate() {
        let error = difference(*actual, *expected);
        // Results below the smallest normal float32 may be flushed to zero.
        let allowed = tolerance * scale + f64::from(f32::MIN_POSITIVE);
        assert!(error <= allowed, "{what}[{index}]: {actual:e} is {error:.3e} from {expected:e}");
    }
}

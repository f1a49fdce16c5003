//! Errors in units in the last place against float64, over all magnitudes, on every path of the processor.

use super::{erf, exp, gelu_erf, gelu_tanh, sigmoid, silu};
use crate::cpu::{Instructions, Isa, Kernel};
use crate::testing::reference::{naive_activation, naive_erf};
use crate::{Activation, Cpu};

macro_rules! kernel {
    ($name:ident, $function:ident) => {
        struct $name<'a>(&'a mut [f32]);

        impl Kernel for $name<'_> {
            type Output = ();

            #[inline(always)]
            fn run<I: Isa>(self) {
                for x in self.0 {
                    *x = $function::<I>(*x);
                }
            }
        }
    };
}

kernel!(Exp, exp);
kernel!(Erf, erf);
kernel!(Sigmoid, sigmoid);
kernel!(Silu, silu);
kernel!(GeluTanh, gelu_tanh);
kernel!(GeluErf, gelu_erf);

fn paths() -> impl Iterator<Item = Cpu> {
    let all = [Instructions::Baseline, Instructions::Avx2, Instructions::Avx512];
    all.into_iter().map(|widest| Cpu::builder().threads(1).instructions(widest).build().expect("threads"))
}

/// Every 4,099th finite float32: a million of them, of all magnitudes.
fn all_magnitudes() -> Vec<f32> {
    (0..=u32::MAX).step_by(4099).map(f32::from_bits).filter(|x| x.is_finite()).collect()
}

/// Distance from the exact value, in units in the last place of the float32 nearest to it; `smallest` is the magnitude
/// below which distances are counted in its own units.
fn ulps(actual: f32, exact: f64, smallest: f32) -> f64 {
    if f64::from(actual) == exact {
        return 0.0;
    }
    let nearest = exact as f32;
    if !nearest.is_finite() || !actual.is_finite() {
        return if nearest == actual { 0.0 } else { f64::INFINITY };
    }
    let magnitude = nearest.abs().max(smallest);
    let unit = f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude);
    (f64::from(actual) - exact).abs() / unit
}

fn check(
    name: &str,
    run: impl Fn(&Cpu, &mut [f32]),
    exact: impl Fn(f64) -> f64,
    smallest: impl Fn(f32) -> f32,
    most: f64,
) {
    let inputs = all_magnitudes();
    for device in paths() {
        let mut values = inputs.clone();
        run(&device, &mut values);
        for (x, y) in inputs.iter().zip(values) {
            let error = ulps(y, exact(f64::from(*x)), smallest(*x));
            assert!(error <= most, "{name}({x:e}) = {y:e} on {device:?}: {error} units");
        }
    }
}

#[test]
fn exp_is_within_one_unit() {
    // A result that is no normal float32 is 0, by the function's own promise.
    let exact = |x: f64| if x.exp() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { x.exp() };
    check("exp", |device, x| device.run(Exp(x)), exact, |_| f32::MIN_POSITIVE, 1.0);
}

#[test]
fn erf_is_within_two_units() {
    check("erf", |device, x| device.run(Erf(x)), naive_erf, |_| f32::MIN_POSITIVE, 2.0);
}

/// The exponential's argument is rounded, which moves small results by more of their own units; they are counted in units
/// of an eighth of x.
fn eighth(x: f32) -> f32 {
    (x.abs() / 8.0).max(f32::MIN_POSITIVE)
}

#[test]
fn activations_are_within_three_units() {
    let exact = |activation| move |x| naive_activation(activation, x);
    // 1 / (1 + exp(-x)) is 0 where exp overflows: there the exact value is below 3e-39.
    check("sigmoid", |device, x| device.run(Sigmoid(x)), exact(Activation::Sigmoid), |_| 1e-31, 3.0);
    check("silu", |device, x| device.run(Silu(x)), exact(Activation::Silu), eighth, 3.0);
    check("gelu_tanh", |device, x| device.run(GeluTanh(x)), exact(Activation::GeluTanh), eighth, 3.0);
    // 1 + erf nearly cancels for negative x, as it does in the reference.
    let half = |x: f32| (x.abs() / 2.0).max(f32::MIN_POSITIVE);
    check("gelu_erf", |device, x| device.run(GeluErf(x)), exact(Activation::GeluErf), half, 3.0);
}

#[test]
fn limits_are_exact_and_nan_stays_nan() {
    let (infinity, nan) = (f32::INFINITY, f32::NAN);
    for device in paths() {
        let mut x = [infinity, -infinity, 0.0, -0.0, 88.8, -104.0, nan];
        device.run(Exp(&mut x));
        assert_eq!(x[..6], [infinity, 0.0, 1.0, 1.0, infinity, 0.0]);
        assert!(x[6].is_nan());
        let mut x = [infinity, -infinity, 4.0, -4.0, 0.0, nan];
        device.run(Erf(&mut x));
        assert_eq!(x[..5], [1.0, -1.0, 1.0, -1.0, 0.0]);
        assert!(x[5].is_nan());
    }
}

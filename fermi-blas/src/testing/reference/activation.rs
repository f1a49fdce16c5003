//! Activations in float64.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use crate::Activation;

/// f(x)
pub fn naive_activation(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::GeluTanh => {
            let inner = (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x);
            // x/2 · (1 + tanh) without the cancellation for negative x
            x / (1.0 + (-2.0 * inner).exp())
        }
        Activation::GeluErf => 0.5 * x * naive_erfc(-x * FRAC_1_SQRT_2),
    }
}

/// The error function.
pub fn naive_erf(x: f64) -> f64 {
    if x.abs() < 2.0 { power_series(x) } else { (1.0 - tail(x.abs())).copysign(x) }
}

fn naive_erfc(x: f64) -> f64 {
    match x {
        x if x.abs() < 2.0 => 1.0 - power_series(x),
        x if x > 0.0 => tail(x),
        x => 2.0 - tail(-x),
    }
}

fn power_series(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * FRAC_2_SQRT_PI
}

/// erfc for large x, by its continued fraction.
fn tail(x: f64) -> f64 {
    let fraction = (1..200).rev().fold(0.0, |below, k| f64::from(k) / 2.0 / (x + below));
    (-x * x).exp() / (x + fraction) / PI.sqrt()
}

#[cfg(test)]
mod tests {
    use super::{naive_erf, naive_erfc};

    #[test]
    fn both_forms_give_the_tabulated_values() {
        for (x, erf) in [(0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9)] {
            assert!((naive_erf(x) - erf).abs() < 1e-14 && (naive_erf(-x) + erf).abs() < 1e-14);
        }
        assert!((naive_erfc(3.0) / 2.209_049_699_858_544e-5 - 1.0).abs() < 1e-12);
        assert!((naive_erfc(1.999_999) - naive_erfc(2.000_001)).abs() < 1e-7);
    }
}

//! Activations and gates.

use super::SIZES;
use crate::testing::reference::naive_activation;
use crate::testing::{Held, assert_near, tolerance, uniform};
use crate::{Activation, Error, Matrix, RowOps};

const ALL: [Activation; 4] =
    [Activation::Silu, Activation::Sigmoid, Activation::GeluTanh, Activation::GeluErf];

/// f over values between -12 and 12.
///
/// # Panics
/// When the device fails.
pub fn activation<B: RowOps>(device: &B) {
    for activation in ALL {
        for (rows, columns) in SIZES {
            let x: Vec<f32> = uniform("x", rows * columns).iter().map(|x| x * 12.0).collect();
            let expected: Vec<f64> = x.iter().map(|x| naive_activation(activation, f64::from(*x))).collect();
            let scales = x.iter().zip(&expected).map(|(x, y)| f64::from(x.abs()).max(y.abs()));
            let scales: Vec<f64> = scales.collect();
            let mut y = Held::new(device, rows, columns, &x, 3);
            device.activate_in_place(activation, y.view_mut()).unwrap();
            assert_near(&format!("{activation:?}"), &y.values(), &expected, &scales, tolerance::ACTIVATION);
        }
    }
}

/// Limits at 0, far away and at infinity; NaN stays NaN.
///
/// # Panics
/// When the device fails.
pub fn activation_edges<B: RowOps>(device: &B) {
    let infinity = f32::INFINITY;
    for activation in ALL {
        let x = [0.0, 1e4, -1e4, 3e38, -3e38, infinity, f32::NAN];
        let mut y = Matrix::from_slice(device, 1, x.len(), &x).unwrap();
        device.activate_in_place(activation, y.view_mut()).unwrap();
        let y = y.to_vec(device).unwrap();
        let expected = if activation == Activation::Sigmoid {
            [0.5, 1.0, 0.0, 1.0, 0.0, 1.0]
        } else {
            [0.0, 1e4, 0.0, 3e38, 0.0, infinity]
        };
        assert_eq!(y[..6], expected, "{activation:?}");
        assert!(y[6].is_nan(), "{activation:?}");
    }
}

/// x · f(gate)
///
/// # Panics
/// When the device fails.
pub fn gate<B: RowOps>(device: &B) {
    for activation in ALL {
        for (rows, columns) in SIZES {
            let x = uniform("x", rows * columns);
            let gate: Vec<f32> = uniform("gate", rows * columns).iter().map(|x| x * 10.0).collect();
            let f = gate.iter().map(|gate| naive_activation(activation, f64::from(*gate)));
            let (mut expected, mut scales) = (Vec::new(), Vec::new());
            for ((x, gate), f) in x.iter().zip(&gate).zip(f) {
                expected.push(f64::from(*x) * f);
                scales.push(f64::from(x.abs()) * f.abs().max(f64::from(gate.abs())));
            }
            let mut x = Held::new(device, rows, columns, &x, 3);
            let gate = Held::new(device, rows, columns, &gate, 0);
            device.gate_in_place(activation, x.view_mut(), gate.view()).unwrap();
            assert_near("gate", &x.values(), &expected, &scales, tolerance::ACTIVATION);
        }
    }
    let mut x = Matrix::zeros(device, 2, 3).unwrap();
    let gate = Matrix::zeros(device, 2, 4).unwrap();
    let result = device.gate_in_place(Activation::Silu, x.view_mut(), gate.view());
    assert!(matches!(result, Err(Error::Shape { .. })));
}

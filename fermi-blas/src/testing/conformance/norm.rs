//! Norms.

use super::{GAPS, SIZES};
use crate::testing::reference::{naive_gated_rms_norm, naive_layer_norm, naive_rms_norm};
use crate::testing::{Held, assert_close, tolerance, uniform};
use crate::{Error, Matrix, RotaryTable, RowOps};

const EPS: f32 = 1e-6;

/// Layer norm of rows whose mean is not zero.
///
/// # Panics
/// When the device fails.
pub fn layer_norm<B: RowOps>(device: &B) {
    for (rows, columns) in SIZES {
        for gap in GAPS {
            let x: Vec<f32> = uniform("x", rows * columns).iter().map(|x| x + 0.5).collect();
            let (weight, bias) = (uniform("weight", columns), uniform("bias", columns));
            let expected = naive_layer_norm(&x, &weight, &bias, f64::from(EPS));
            let x = Held::new(device, rows, columns, &x, gap);
            let weight = Matrix::from_slice(device, 1, columns, &weight).unwrap();
            let bias = Matrix::from_slice(device, 1, columns, &bias).unwrap();
            let mut y = Held::new(device, rows, columns, &vec![f32::NAN; rows * columns], gap);
            device.layer_norm(x.view(), weight.view(), bias.view(), EPS, y.view_mut()).unwrap();
            assert_close("layer_norm", &y.values(), &expected, tolerance::NORM);
        }
    }
    let x = Matrix::zeros(device, 2, 3).unwrap();
    let (weight, mut y) = (Matrix::zeros(device, 1, 4).unwrap(), Matrix::zeros(device, 2, 3).unwrap());
    let result = device.layer_norm(x.view(), weight.view(), weight.view(), EPS, y.view_mut());
    assert!(matches!(result, Err(Error::Shape { .. })));
}

/// Zero-centred RMS norm, with the values of case D7.
///
/// # Panics
/// When the device fails.
pub fn rms_norm<B: RowOps>(device: &B) {
    for (rows, columns) in SIZES {
        for gap in GAPS {
            let (x, weight) = (uniform("x", rows * columns), uniform("weight", columns));
            let expected = naive_rms_norm(&x, &weight, f64::from(EPS));
            let x = Held::new(device, rows, columns, &x, gap);
            let weight = Matrix::from_slice(device, 1, columns, &weight).unwrap();
            let mut y = Held::new(device, rows, columns, &vec![f32::NAN; rows * columns], gap);
            device.rms_norm(x.view(), weight.view(), EPS, y.view_mut()).unwrap();
            assert_close("rms_norm", &y.values(), &expected, tolerance::NORM);
        }
    }
    for (weight, scale) in [(0.0, 1.0), (0.001, 1.001)] {
        let x = Matrix::from_slice(device, 1, 2, &[3.0, 4.0]).unwrap();
        let weight = Matrix::from_slice(device, 1, 2, &[weight; 2]).unwrap();
        let mut y = Matrix::zeros(device, 1, 2).unwrap();
        device.rms_norm(x.view(), weight.view(), 0.0, y.view_mut()).unwrap();
        let expected = [0.848_528_137 * scale, 1.131_370_85 * scale];
        assert_close("D7", &y.to_vec(device).unwrap(), &expected, tolerance::NORM);
    }
}

/// The norm of each head's part of a row, in place.
///
/// # Panics
/// When the device fails.
pub fn rms_norm_of_heads<B: RowOps>(device: &B) {
    for (heads, rows, columns) in [(1, 1, 1), (2, 3, 5), (4, 0, 8), (8, 33, 64), (2, 200, 256)] {
        for gap in GAPS {
            let (x, weight) = (uniform("x", heads * rows * columns), uniform("weight", columns));
            let expected = naive_rms_norm(&x, &weight, f64::from(EPS));
            let mut x = Held::new(device, rows, heads * columns, &x, gap);
            let weight = Matrix::from_slice(device, 1, columns, &weight).unwrap();
            let view = x.view_mut().heads(heads).unwrap();
            device.rms_norm_in_place(view, weight.view(), EPS).unwrap();
            assert_close("rms_norm_in_place", &x.values(), &expected, tolerance::NORM);
        }
    }
}

/// Gated RMS norm; a weight of 0 gives exactly 0 (case D7).
///
/// # Panics
/// When the device fails.
pub fn gated_rms_norm<B: RowOps>(device: &B) {
    for (rows, columns) in SIZES {
        for gap in GAPS {
            let (x, weight) = (uniform("x", rows * columns), uniform("weight", columns));
            let z: Vec<f32> = uniform("z", rows * columns).iter().map(|z| z * 8.0).collect();
            let expected = naive_gated_rms_norm(&x, &z, &weight, f64::from(EPS));
            let z = Held::new(device, rows, columns, &z, gap);
            let mut x = Held::new(device, rows, columns, &x, gap);
            let weight = Matrix::from_slice(device, 1, columns, &weight).unwrap();
            device.gated_rms_norm_in_place(x.view_mut(), z.view(), weight.view(), EPS).unwrap();
            assert_close("gated_rms_norm", &x.values(), &expected, tolerance::NORM);
        }
    }
    let mut x = Matrix::from_slice(device, 1, 2, &[3.0, 4.0]).unwrap();
    let z = Matrix::from_slice(device, 1, 2, &[1.0, 2.0]).unwrap();
    let weight = Matrix::zeros(device, 1, 2).unwrap();
    device.gated_rms_norm_in_place(x.view_mut(), z.view(), weight.view(), EPS).unwrap();
    assert_eq!(x.to_vec(device).unwrap(), [0.0, 0.0]);
}

/// Case X11: a residual of 70000, which float16 cannot hold, stays finite through sum and norms.
///
/// # Panics
/// When the device fails.
pub fn large_values<B: RowOps>(device: &B) {
    let columns = 129;
    let x: Vec<f32> = uniform("x", columns).iter().map(|x| x * 70_000.0).collect();
    let mut sum = Matrix::from_slice(device, 1, columns, &x).unwrap();
    let other = Matrix::from_slice(device, 1, columns, &x).unwrap();
    device.add_in_place(sum.view_mut(), other.view()).unwrap();
    let doubled: Vec<f32> = x.iter().map(|x| 2.0 * x).collect();
    assert_eq!(sum.to_vec(device).unwrap(), doubled);
    let (zero, mut y) =
        (Matrix::zeros(device, 1, columns).unwrap(), Matrix::zeros(device, 1, columns).unwrap());
    device.rms_norm(sum.view(), zero.view(), EPS, y.view_mut()).unwrap();
    let expected = naive_rms_norm(&doubled, &vec![0.0; columns], f64::from(EPS));
    assert_close("X11", &y.to_vec(device).unwrap(), &expected, tolerance::NORM);
}

/// A weight, and the positions of rows, are one row: no row at all would leave nothing to read.
///
/// # Panics
/// When the device fails.
pub fn weights_of_one_row<B: RowOps>(device: &B) {
    let matrix = |rows| Matrix::<B>::zeros(device, rows, 8).unwrap();
    let table = RotaryTable::new(device, 16, 8, 1e4).unwrap();
    let (x, one) = (matrix(2), matrix(1));
    for rows in [0, 2] {
        let (mut y, other) = (matrix(2), matrix(rows));
        let positions = Matrix::<B, u32>::zeros(device, rows, 2).unwrap();
        let results = [
            device.layer_norm(x.view(), other.view(), one.view(), EPS, y.view_mut()),
            device.layer_norm(x.view(), one.view(), other.view(), EPS, y.view_mut()),
            device.rms_norm(x.view(), other.view(), EPS, y.view_mut()),
            device.rms_norm_in_place(y.view_mut().heads(1).unwrap(), other.view(), EPS),
            device.gated_rms_norm_in_place(y.view_mut(), x.view(), other.view(), EPS),
            device.rotary_in_place(y.view_mut().heads(1).unwrap(), positions.view(), &table),
            device.causal_softmax_in_place(y.view_mut(), 1, positions.view(), 1.0),
        ];
        for (index, result) in results.iter().enumerate() {
            assert!(matches!(result, Err(Error::Shape { .. })), "{index} of {rows} rows: {result:?}");
        }
    }
}

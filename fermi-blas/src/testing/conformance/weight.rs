//! Weights in their three forms.

use half::bf16;

use crate::testing::reference::{Host, naive_gemm};
use crate::testing::{Held, assert_near, tolerance, uniform};
use crate::{Blas, Error, Matrix, Precision, Q8, Q8_GROUP, Weight, quantize};

/// Rows and columns: nothing, one, a short last group, 4304 = 67 · 64 + 16 (case F3).
/// and rows enough for other launches of a GPU.
const SIZES: [(usize, usize); 13] = [
    (0, 64),
    (3, 0),
    (1, 1),
    (2, 7),
    (3, 64),
    (5, 65),
    (9, 200),
    (4, 4304),
    (70, 1024),
    (300, 96),
    (600, 1040),
    (4200, 32),
    (4200, 5),
];

const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::Bf16, Precision::Q8];

/// A weight and the float32 values that it stands for.
fn weight<B: Blas>(device: &B, precision: Precision, rows: usize, columns: usize) -> (Weight<B>, Host) {
    let mut values = uniform("weight", rows * columns);
    let weight = match precision {
        Precision::F32 => Weight::F32(Matrix::from_slice(device, rows, columns, &values).unwrap()),
        Precision::Bf16 => {
            let narrow: Vec<bf16> = values.iter().map(|x| bf16::from_f32(*x)).collect();
            values = narrow.iter().map(|x| x.to_f32()).collect();
            Weight::Bf16(Matrix::from_slice(device, rows, columns, &narrow).unwrap())
        }
        Precision::Q8 => {
            let (codes, scales) = quantize(&values, columns);
            values = crate::testing::reference::naive_dequantize(&codes, &scales, columns);
            let groups = columns.div_ceil(Q8_GROUP);
            Weight::Q8(Q8 {
                codes: Matrix::from_slice(device, rows, columns, &codes).unwrap(),
                scales: Matrix::from_slice(device, rows, groups, &scales).unwrap(),
            })
        }
    };
    (weight, Host { rows, columns, values })
}

/// One activation row against a weight.
///
/// # Panics
/// When the device fails.
pub fn gemv<B: Blas>(device: &B) {
    for precision in PRECISIONS {
        for (rows, columns) in SIZES {
            let (weight, host) = weight(device, precision, rows, columns);
            let x = Host::uniform("x", 1, columns);
            let mut y = Matrix::from_slice(device, 1, rows, &vec![f32::NAN; rows]).unwrap();
            let x_device = Held::new(device, 1, columns, &x.values, 3);
            device.gemv(weight.view(), x_device.view(), y.view_mut()).unwrap();
            let none = Host { rows: 1, columns: rows, values: vec![0.0; rows] };
            let expected = naive_gemm(&x, &host.transposed(), &none, 1.0, 0.0);
            let (what, tolerance) =
                (format!("gemv {precision:?} {rows}x{columns}"), tolerance::product(columns));
            let y = y.to_vec(device).unwrap();
            assert_near(&what, &y, &expected.values, &expected.magnitudes, tolerance);
        }
        let (weight, _) = weight(device, precision, 4, 6);
        for (x, y) in [(5, 4), (6, 3)] {
            let x = Matrix::zeros(device, 1, x).unwrap();
            let mut y = Matrix::zeros(device, 1, y).unwrap();
            assert!(matches!(device.gemv(weight.view(), x.view(), y.view_mut()), Err(Error::Shape { .. })));
        }
    }
}

/// Values of a weight, bit for bit code · scale; also of some of its rows.
///
/// # Panics
/// When the device fails.
pub fn dequantize<B: Blas>(device: &B) {
    for precision in PRECISIONS {
        for (rows, columns) in SIZES {
            let (weight, host) = weight(device, precision, rows, columns);
            let mut values = Held::new(device, rows, columns, &vec![f32::NAN; rows * columns], 3);
            device.dequantize(weight.view(), values.view_mut()).unwrap();
            assert_eq!(values.values(), host.values, "{precision:?} {rows}x{columns}");
            let some = rows / 3..rows;
            let mut part = Matrix::zeros(device, some.len(), columns).unwrap();
            device.dequantize(weight.view().row_range(some.clone()).unwrap(), part.view_mut()).unwrap();
            assert_eq!(part.to_vec(device).unwrap(), host.values[some.start * columns..]);
        }
    }
}

/// Rows of a table by their index, in any order and more than once.
///
/// # Panics
/// When the device fails.
pub fn gather<B: Blas>(device: &B) {
    for precision in PRECISIONS {
        let (rows, columns) = (50, 130);
        let (table, host) = weight(device, precision, rows, columns);
        for ids in [vec![], vec![49], vec![7, 0, 49, 7, 7, 12]] {
            let device_ids = Matrix::from_slice(device, 1, ids.len(), &ids).unwrap();
            let mut values = Held::new(device, ids.len(), columns, &vec![0.0; ids.len() * columns], 3);
            device.gather(table.view(), device_ids.view(), values.view_mut()).unwrap();
            let rows = ids.iter().flat_map(|id| &host.values[*id as usize * columns..][..columns]);
            assert_eq!(values.values(), rows.copied().collect::<Vec<f32>>());
        }
        let ids = Matrix::zeros(device, 1, 2).unwrap();
        let mut values = Matrix::zeros(device, 3, columns).unwrap();
        assert!(matches!(
            device.gather(table.view(), ids.view(), values.view_mut()),
            Err(Error::Shape { .. })
        ));
    }
}

/// Any number of activation rows, with all the scratch that the weight asks for, with a tenth, or with one row.
///
/// # Panics
/// When the device fails.
pub fn multiply<B: Blas>(device: &B) {
    for precision in PRECISIONS {
        for (rows, columns) in [(0, 64), (3, 0), (1, 1), (5, 65), (70, 200), (129, 96)] {
            let (weight, host) = weight(device, precision, rows, columns);
            for tokens in [0, 1, 2, 3, 8, 9, 65] {
                for share in [1, 10, usize::MAX] {
                    let x = Host::uniform("x", tokens, columns);
                    let scratch = (weight.multiply_scratch_len() / share).max(columns);
                    let mut scratch = Matrix::zeros(device, 1, scratch).unwrap();
                    let mut y = Held::new(device, tokens, rows, &vec![f32::NAN; tokens * rows], 3);
                    let x_device = Held::new(device, tokens, columns, &x.values, 3);
                    weight.multiply(device, x_device.view(), y.view_mut(), scratch.view_mut()).unwrap();
                    let none = Host { rows: tokens, columns: rows, values: vec![0.0; tokens * rows] };
                    let expected = naive_gemm(&x, &host.transposed(), &none, 1.0, 0.0);
                    let what = format!("multiply {precision:?} {tokens}x{rows}x{columns}");
                    let tolerance = tolerance::product(columns);
                    assert_near(&what, &y.values(), &expected.values, &expected.magnitudes, tolerance);
                }
            }
        }
    }
}

/// A group with a value that is not finite is NaN, as a product with it would be; the others are what they were.
///
/// # Panics
/// When the device fails.
pub fn groups_that_are_not_finite<B: Blas>(device: &B) {
    for bad in [f32::NAN, f32::INFINITY] {
        let mut values = uniform("weight", 200);
        values[70] = bad;
        let (codes, scales) = quantize(&values, 200);
        let weight = Weight::Q8(Q8 {
            codes: Matrix::from_slice(device, 1, 200, &codes).unwrap(),
            scales: Matrix::from_slice(device, 1, 4, &scales).unwrap(),
        });
        let mut out = Matrix::zeros(device, 1, 200).unwrap();
        device.dequantize(weight.view(), out.view_mut()).unwrap();
        for (at, value) in out.to_vec(device).unwrap().iter().enumerate() {
            assert_eq!(value.is_nan(), (64..128).contains(&at), "{bad} {at}");
        }
        let x = Matrix::from_slice(device, 1, 200, &uniform("x", 200)).unwrap();
        let mut y = Matrix::zeros(device, 1, 1).unwrap();
        device.gemv(weight.view(), x.view(), y.view_mut()).unwrap();
        assert!(y.to_vec(device).unwrap()[0].is_nan(), "{bad}");
    }
}

/// Case F3: a zero group stays exactly 0, tiny groups give no NaN.
///
/// # Panics
/// When the device fails.
pub fn small_groups<B: Blas>(device: &B) {
    let columns = 200;
    let mut values = uniform("weight", columns);
    values[..64].fill(0.0);
    values[64..128].iter_mut().for_each(|x| *x *= 1e-42);
    let (codes, scales) = quantize(&values, columns);
    let weight = Weight::Q8(Q8 {
        codes: Matrix::from_slice(device, 1, columns, &codes).unwrap(),
        scales: Matrix::from_slice(device, 1, 4, &scales).unwrap(),
    });
    let mut out = Matrix::zeros(device, 1, columns).unwrap();
    device.dequantize(weight.view(), out.view_mut()).unwrap();
    let out = out.to_vec(device).unwrap();
    assert_eq!(out[..64], [0.0; 64]);
    assert!(out.iter().all(|x| x.is_finite()));
    let half = f64::from(scales[2]) / 2.0 * 1.000_001;
    assert_near(
        "group",
        &out[128..192],
        &values[128..192].iter().map(|x| f64::from(*x)).collect::<Vec<_>>(),
        &[half; 64],
        1.0,
    );
    let x = Matrix::from_slice(device, 1, columns, &vec![1e30; columns]).unwrap();
    let mut y = Matrix::zeros(device, 1, 1).unwrap();
    device.gemv(weight.view(), x.view(), y.view_mut()).unwrap();
    assert!(y.to_vec(device).unwrap()[0].is_finite());
}

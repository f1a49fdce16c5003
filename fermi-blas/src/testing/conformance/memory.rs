//! Moving values, adding them, and counting what is held.

use super::{GAPS, SIZES};
use crate::testing::{Held, assert_close, tolerance, uniform};
use crate::{Backend, Error, Matrix, RowOps};

/// What is written is read; other lengths are refused.
///
/// # Panics
/// When the device fails.
pub fn read_and_write<B: Backend>(device: &B) {
    for (rows, columns) in SIZES {
        for gap in GAPS {
            let values = uniform("values", rows * columns);
            let mut held = Held::new(device, rows, columns, &vec![0.0; rows * columns], gap);
            device.write(&values, held.view_mut()).unwrap();
            assert_eq!(held.values(), values);
            assert_eq!(held.view().to_vec(device).unwrap(), values);
            let longer = vec![0.0; rows * columns + 1];
            assert!(matches!(device.write(&longer, held.view_mut()), Err(Error::Shape { .. })));
        }
    }
    let ids = Matrix::from_slice(device, 2, 2, &[1u32, 2, 3, u32::MAX]).unwrap();
    assert_eq!(ids.row_range(1..2).unwrap().to_vec(device).unwrap(), [3, u32::MAX]);
    let codes = Matrix::from_slice(device, 1, 5, &[-127i8, 127, 0, 1, -1]).unwrap();
    assert_eq!(codes.view().column_range(1..4).unwrap().to_vec(device).unwrap(), [127, 0, 1]);
}

/// Copies arrive whole, whatever the rows' gaps.
///
/// # Panics
/// When the device fails.
pub fn copy<B: Backend>(device: &B) {
    for (rows, columns) in SIZES {
        for (from, to) in [(0, 0), (0, 3), (5, 0), (3, 2)] {
            let values = uniform("values", rows * columns);
            let source = Held::new(device, rows, columns, &values, from);
            let mut target = Held::new(device, rows, columns, &vec![0.0; rows * columns], to);
            device.copy(source.view(), target.view_mut()).unwrap();
            assert_eq!(target.values(), values);
        }
    }
    let source = Matrix::from_slice(device, 2, 2, &[1i8, 2, 3, 4]).unwrap();
    let mut target = Matrix::zeros(device, 2, 3).unwrap();
    device.copy(source.view(), target.view_mut().column_range(1..3).unwrap()).unwrap();
    assert_eq!(target.to_vec(device).unwrap(), [0, 1, 2, 0, 3, 4]);
    assert!(matches!(device.copy(source.view(), target.view_mut()), Err(Error::Shape { .. })));
}

/// Sums of matrices, and of a matrix and one row.
///
/// # Panics
/// When the device fails.
pub fn add<B: RowOps>(device: &B) {
    for (rows, columns) in SIZES {
        for (gap, broadcast) in [(0, false), (3, false), (0, true), (3, true)] {
            let y_rows = if broadcast { 1 } else { rows };
            let (x, y) = (uniform("x", rows * columns), uniform("y", y_rows * columns));
            let mut sum = Held::new(device, rows, columns, &x, gap);
            device.add_in_place(sum.view_mut(), Held::new(device, y_rows, columns, &y, gap).view()).unwrap();
            let terms = x.iter().zip(y.iter().cycle());
            let expected: Vec<f64> = terms.map(|(x, y)| f64::from(*x) + f64::from(*y)).collect();
            assert_close("add", &sum.values(), &expected, tolerance::ELEMENTWISE);
        }
    }
    let mut x = Matrix::zeros(device, 3, 4).unwrap();
    for (rows, columns) in [(2, 4), (3, 5), (0, 4)] {
        let y = Matrix::zeros(device, rows, columns).unwrap();
        assert!(matches!(device.add_in_place(x.view_mut(), y.view()), Err(Error::Shape { .. })));
    }
}

/// Bytes are booked when a buffer comes and goes; impossible sizes are errors.
///
/// # Panics
/// When the device fails.
pub fn memory<B: Backend>(device: &B) {
    let before = device.memory().in_use;
    let matrix = Matrix::<B>::zeros(device, 1000, 1000).unwrap();
    let held = device.memory();
    assert!(held.in_use >= before + 4_000_000 && held.peak >= held.in_use, "{held:?}");
    drop(matrix);
    assert_eq!(device.memory().in_use, before);
    assert!(device.memory().peak >= held.in_use);
    assert!(matches!(Matrix::<B>::zeros(device, usize::MAX, 2), Err(Error::SizeOverflow { .. })));
    device.synchronize().unwrap();
    drop(device.span("conformance"));
}

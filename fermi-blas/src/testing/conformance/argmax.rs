//! The largest value's index.

use crate::testing::{Held, uniform};
use crate::{Error, Matrix, RowOps};

/// The first of the largest; `u32::MAX` for rows with NaN or without a finite value.
///
/// # Panics
/// When the device fails.
pub fn argmax<B: RowOps>(device: &B) {
    let run = |rows: usize, columns: usize, values: &[f32], gap: usize| {
        let x = Held::new(device, rows, columns, values, gap);
        let mut index = Matrix::zeros(device, 1, rows).unwrap();
        device.argmax(x.view(), index.view_mut()).unwrap();
        index.to_vec(device).unwrap()
    };
    assert!(run(0, 5, &[], 0).is_empty());
    assert_eq!(run(2, 0, &[], 3), [u32::MAX; 2]);
    for (rows, columns, gap) in [(1, 1, 0), (3, 7, 3), (2, 1000, 0), (5, 4099, 5)] {
        let values = uniform("logits", rows * columns);
        let largest = |row: &[f32]| {
            let better = |best: usize, index: usize| if row[index] > row[best] { index } else { best };
            (0..row.len()).reduce(better).unwrap() as u32
        };
        let expected: Vec<u32> = values.chunks(columns).map(largest).collect();
        assert_eq!(run(rows, columns, &values, gap), expected);
    }
    let infinite = f32::NEG_INFINITY;
    let rows = [
        [1.0, 3.0, 3.0, 2.0],
        [0.0, f32::NAN, 9.0, 0.0],
        [infinite; 4],
        [infinite, -5.0, infinite, infinite],
        [f32::INFINITY, 1.0, f32::INFINITY, 1.0],
    ];
    let ids = run(5, 4, rows.as_flattened(), 3);
    assert_eq!(ids[..4], [1, u32::MAX, u32::MAX, 1]);
    assert_eq!(ids[4], 0);
    let x = Matrix::zeros(device, 2, 3).unwrap();
    let mut index = Matrix::zeros(device, 1, 1).unwrap();
    assert!(matches!(device.argmax(x.view(), index.view_mut()), Err(Error::Shape { .. })));
}

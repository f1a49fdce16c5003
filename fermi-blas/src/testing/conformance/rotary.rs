//! Rotary positions.

use super::GAPS;
use crate::testing::reference::naive_rotary;
use crate::testing::{Held, assert_near, tolerance, uniform, uniform_ids};
use crate::{Blas, Error, Matrix, RotaryTable, RowOps};

/// Rotation of every head's first columns, at positions in any order; columns behind stay untouched (case D8).
///
/// # Panics
/// When the device fails.
pub fn rotary<B: Blas + RowOps>(device: &B) {
    for (heads, rows, columns, rotary_dim) in
        [(1, 1, 2, 2), (2, 3, 7, 6), (3, 0, 8, 4), (8, 20, 256, 64), (2, 5, 64, 64), (2, 5, 9, 0)]
    {
        for gap in GAPS {
            let (half, count) = (rotary_dim / 2, 50);
            let table = RotaryTable::new(device, count, rotary_dim, 1e7).unwrap();
            let cosines = table.cosines.to_vec(device).unwrap();
            let sines = table.sines.to_vec(device).unwrap();
            let (x, positions) = (uniform("x", rows * heads * columns), uniform_ids("positions", rows, 50));
            let each: Vec<u32> = positions.iter().flat_map(|p| vec![*p; heads]).collect();
            let expected = naive_rotary(&x, columns, &each, half, (&cosines, &sines));
            let mut held = Held::new(device, rows, heads * columns, &x, gap);
            let positions = Matrix::from_slice(device, 1, rows, &positions).unwrap();
            let view = held.view_mut().heads(heads).unwrap();
            device.rotary_in_place(view, positions.view(), &table).unwrap();
            let lengths = x.chunks(columns).flat_map(|row| {
                (0..columns).map(|i| {
                    if i >= 2 * half {
                        return 0.0;
                    }
                    f64::from(row[i % half.max(1)]).hypot(f64::from(row[half + i % half.max(1)]))
                })
            });
            let lengths: Vec<f64> = lengths.collect();
            assert_near("rotary", &held.values(), &expected, &lengths, tolerance::ROTARY);
        }
    }
    let table = RotaryTable::new(device, 4, 8, 1e4).unwrap();
    let mut x = Matrix::zeros(device, 3, 8).unwrap();
    let positions = Matrix::zeros(device, 1, 2).unwrap();
    let result = device.rotary_in_place(x.view_mut().heads(1).unwrap(), positions.view(), &table);
    assert!(matches!(result, Err(Error::Shape { .. })));
    let positions = Matrix::zeros(device, 1, 3).unwrap();
    let result = device.rotary_in_place(x.view_mut().heads(2).unwrap(), positions.view(), &table);
    assert!(matches!(result, Err(Error::Shape { .. })));
}

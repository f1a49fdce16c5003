//! Softmax, plain and causal.

use super::{GAPS, SIZES};
use crate::testing::reference::{naive_causal_softmax, naive_softmax};
use crate::testing::{Held, assert_near, tolerance, uniform, uniform_ids};
use crate::{Error, Matrix, RowOps};

fn scores(rows: usize, columns: usize) -> Vec<f32> {
    uniform("scores", rows * columns).iter().map(|x| x * 20.0).collect()
}

/// Softmax of scaled rows; rows without a finite value give NaN and harm no other row.
///
/// # Panics
/// When the device fails.
pub fn softmax<B: RowOps>(device: &B) {
    // and rows that a device takes in pieces
    for (rows, columns) in SIZES.into_iter().chain([(3, 1025), (2, 4000), (2, 12_000), (2, 12_001)]) {
        for (gap, scale) in [(0, 1.0), (3, 0.125), (0, -0.5)] {
            let x = scores(rows, columns);
            let expected = naive_softmax(&x, columns, f64::from(scale));
            let mut x = Held::new(device, rows, columns, &x, gap);
            device.softmax_in_place(x.view_mut(), scale).unwrap();
            assert_near("softmax", &x.values(), &expected, &expected, tolerance::SOFTMAX);
        }
    }
    let infinite = f32::NEG_INFINITY;
    let starts = [[infinite; 3], [infinite, 0.0, infinite], [f32::NAN, 1.0, 2.0], [1e4, 0.0, -1e4]];
    for columns in [3, 3000, 13_000] {
        let mut rows = vec![infinite; 4 * columns];
        rows.chunks_mut(columns).zip(starts).for_each(|(row, start)| row[..3].copy_from_slice(&start));
        let mut x = Matrix::from_slice(device, 4, columns, &rows).unwrap();
        device.softmax_in_place(x.view_mut(), 1.0).unwrap();
        let y = x.to_vec(device).unwrap();
        let rows: Vec<_> = y.chunks(columns).collect();
        assert!(rows[0].iter().chain(rows[2]).all(|y| y.is_nan()), "{columns}");
        for (row, one) in [(rows[1], 1), (rows[3], 0)] {
            assert!(row.iter().enumerate().all(|(at, &y)| y == f32::from(u8::from(at == one))), "{columns}");
        }
    }
}

/// Softmax of what each query may see; what lies behind becomes 0, even NaN.
///
/// # Panics
/// When the device fails.
pub fn causal_softmax<B: RowOps>(device: &B) {
    for (queries, heads, keys) in
        [(0, 2, 4), (1, 1, 1), (3, 2, 7), (5, 8, 64), (40, 3, 129), (6, 2, 3000), (4, 2, 12_000)]
    {
        for gap in GAPS {
            let rows = queries * heads;
            let mut x = scores(rows, keys);
            let positions = uniform_ids("positions", queries, keys as u32 + 2);
            for (row, values) in x.chunks_mut(keys).enumerate() {
                let visible = (positions[row / heads] as usize + 1).min(keys);
                values[visible..].fill(f32::NAN);
            }
            let expected = naive_causal_softmax(&x, keys, heads, &positions, 0.3);
            let positions = Matrix::from_slice(device, 1, queries, &positions).unwrap();
            let mut x = Held::new(device, rows, keys, &x, gap);
            device.causal_softmax_in_place(x.view_mut(), heads, positions.view(), 0.3).unwrap();
            assert_near("causal_softmax", &x.values(), &expected, &expected, tolerance::SOFTMAX);
        }
    }
    let positions = Matrix::zeros(device, 1, 3).unwrap();
    let mut x = Matrix::zeros(device, 4, 5).unwrap();
    let result = device.causal_softmax_in_place(x.view_mut(), 2, positions.view(), 1.0);
    assert!(matches!(result, Err(Error::Shape { .. })));
}

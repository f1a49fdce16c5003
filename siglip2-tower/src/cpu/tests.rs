use fermi_blas::{Cpu, Error, Matrix};

use crate::{WINDOW_PATCHES, WindowBackend};

fn values(name: &str, count: usize) -> Vec<f32> {
    let uniform = fermi_blas::synthetic::Distribution { center: 0.0, scale: 2.0 };
    fermi_blas::synthetic::values(name, count, 1, uniform)
}

/// softmax(q · kᵀ · scaling) · v per window and head, in float64.
fn naive_window_attention(qkv: &[f32], heads: usize, width: usize, scaling: f64) -> Vec<f64> {
    let (rows, head_dim) = (qkv.len() / (3 * width), width / heads);
    let at =
        |row: usize, block: usize, column: usize| f64::from(qkv[row * 3 * width + block * width + column]);
    let mut context = vec![0.0; rows * width];
    for query in 0..rows {
        let first = query - query % WINDOW_PATCHES;
        for head in 0..heads {
            let columns = head * head_dim..(head + 1) * head_dim;
            let score = |key: usize| {
                let dot: f64 = columns.clone().map(|column| at(query, 0, column) * at(key, 1, column)).sum();
                (dot * scaling).exp()
            };
            let weights: Vec<f64> = (first..first + WINDOW_PATCHES).map(score).collect();
            let sum: f64 = weights.iter().sum();
            for column in columns.clone() {
                let mixed =
                    weights.iter().enumerate().map(|(key, weight)| weight * at(first + key, 2, column));
                context[query * width + column] = mixed.sum::<f64>() / sum;
            }
        }
    }
    context
}

#[test]
fn window_attention_equals_float64() {
    for threads in [1, 2] {
        let device = Cpu::with_threads(threads).unwrap();
        for (windows, heads, head_dim) in [(0, 2, 8), (1, 1, 1), (1, 3, 7), (5, 2, 72), (64, 16, 72)] {
            let (rows, width) = (windows * WINDOW_PATCHES, heads * head_dim);
            let qkv = values("qkv", rows * 3 * width);
            let scaling = (head_dim as f32).powf(-0.5);
            let expected = naive_window_attention(&qkv, heads, width, f64::from(scaling));
            let qkv = Matrix::from_slice(&device, rows, 3 * width, &qkv).unwrap();
            let mut context = Matrix::from_slice(&device, rows, width, &vec![7.0; rows * width]).unwrap();
            device.window_attention(qkv.view(), heads, scaling, context.view_mut()).unwrap();
            let context = context.to_vec(&device).unwrap();
            // A score is a sum of head_dim products, rounded once a term, and stands in an exponent.
            fermi_blas::testing::assert_close("window attention", &context, &expected, 2e-6);
        }
    }
}

#[test]
fn the_mean_is_added() {
    let device = Cpu::with_threads(2).unwrap();
    let (windows, width) = (33, 9);
    let (w, x) = (values("w", 4 * windows * width), values("x", windows * width));
    let expected: Vec<f64> = (0..windows * width)
        .map(|index| {
            let (window, column) = (index / width, index % width);
            let sum: f64 = (0..4).map(|patch| f64::from(w[(4 * window + patch) * width + column])).sum();
            f64::from(x[index]) + sum / 4.0
        })
        .collect();
    let w = Matrix::from_slice(&device, 4 * windows, width, &w).unwrap();
    let mut x = Matrix::from_slice(&device, windows, width, &x).unwrap();
    device.add_window_mean_in_place(w.view(), x.view_mut()).unwrap();
    fermi_blas::testing::assert_close("mean", &x.to_vec(&device).unwrap(), &expected, 2e-7);
}

#[test]
fn wrong_sizes_are_errors() {
    let device = Cpu::with_threads(1).unwrap();
    let zeros = |rows, columns| Matrix::<Cpu>::zeros(&device, rows, columns).unwrap();
    let attend = |qkv: [usize; 2], heads, context: [usize; 2]| {
        let (qkv, mut context) = (zeros(qkv[0], qkv[1]), zeros(context[0], context[1]));
        device.window_attention(qkv.view(), heads, 1.0, context.view_mut())
    };
    assert!(attend([8, 12], 2, [8, 4]).is_ok());
    for wrong in [
        attend([8, 12], 2, [4, 4]),
        attend([6, 12], 2, [6, 4]),
        attend([8, 11], 2, [8, 4]),
        attend([8, 12], 3, [8, 4]),
        attend([8, 12], 0, [8, 4]),
        device.add_window_mean_in_place(zeros(8, 4).view(), zeros(3, 4).view_mut()),
        device.add_window_mean_in_place(zeros(8, 4).view(), zeros(2, 3).view_mut()),
    ] {
        assert!(matches!(wrong, Err(Error::Shape { .. })), "{wrong:?}");
    }
}

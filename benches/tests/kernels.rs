//! The kernels of this folder, as host code, against plain loops: sizes that fill no tile, and enough for many.

use benches::kernels::{
    NaiveAttention, Q4, gemm_tiled, gemv_q4, launch_empty, naive_attention, naive_scores_len, read_all,
};
use fermi_blas::{Emulated, Matrix, Order, synthetic};

const ORDERS: [Order; 3] = [Order::Forward, Order::Backward, Order::Shuffled];

fn uniform(name: &str, rows: usize, columns: usize) -> Vec<f32> {
    let distribution = synthetic::Distribution { center: 0.0, scale: 1.0 };
    synthetic::values(name, rows * columns, 0, distribution)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
}

#[test]
fn emulated_tiled_products() {
    for (order, (m, n, k)) in ORDERS.into_iter().zip([(1, 1, 1), (97, 100, 33), (200, 96, 16)]) {
        let device = Emulated::emulated(order).unwrap();
        let (a, b) = (uniform("a", m, k), uniform("b", n, k));
        let a_device = Matrix::from_slice(&device, m, k, &a).unwrap();
        let b_device = Matrix::from_slice(&device, n, k, &b).unwrap();
        let mut c = Matrix::zeros(&device, m, n).unwrap();
        gemm_tiled(&device, a_device.view(), b_device.view(), c.view_mut()).unwrap();
        let rows = a.chunks_exact(k).flat_map(|row| b.chunks_exact(k).map(move |column| dot(row, column)));
        benches::close("tiled", &c.to_vec(&device).unwrap(), &rows.collect::<Vec<f32>>(), 1e-5).unwrap();
    }
}

#[test]
fn emulated_four_bit_products() {
    for (order, (rows, columns)) in ORDERS.into_iter().zip([(3usize, 128usize), (70, 1024), (5, 90)]) {
        let device = Emulated::emulated(order).unwrap();
        let codes: Vec<i8> = (0..rows * columns / 2).map(|i| (i * 37 % 256) as u8 as i8).collect();
        let groups = columns.div_ceil(64);
        let (scales, x) = (uniform("scales", rows, groups), uniform("x", 1, columns));
        let halves = codes.iter().flat_map(|byte| [*byte as u8 & 15, *byte as u8 >> 4]);
        let value = |(i, half): (usize, u8)| {
            (f32::from(half) - 8.0) * scales[i / columns * groups + i % columns / 64]
        };
        let values: Vec<f32> = halves.enumerate().map(value).collect();
        let expected: Vec<f32> = values.chunks_exact(columns).map(|row| dot(row, &x)).collect();
        let weight = Q4 {
            codes: Matrix::from_slice(&device, rows, columns / 2, &codes).unwrap(),
            scales: Matrix::from_slice(&device, rows, groups, &scales).unwrap(),
        };
        let x = Matrix::from_slice(&device, 1, columns, &x).unwrap();
        let mut y = Matrix::zeros(&device, 1, rows).unwrap();
        gemv_q4(&device, &weight, x.view(), y.view_mut()).unwrap();
        benches::close("4 bits", &y.to_vec(&device).unwrap(), &expected, 1e-5).unwrap();
    }
}

#[test]
fn emulated_naive_attention_is_attention() {
    let (tokens, history, heads, groups, width) = (5, 300, 4, 2, 24);
    let keys_len = history + tokens;
    let (q, k) = (uniform("q", tokens, heads * 2 * width), uniform("k", keys_len, groups * width));
    let v = uniform("v", keys_len, groups * width);
    let mut expected = Vec::new();
    for token in 0..tokens {
        for head in 0..heads {
            let at = (token * heads + head) * 2 * width;
            let part = |matrix: &[f32], key: usize| {
                let start = key * groups * width + head / (heads / groups) * width;
                matrix[start..start + width].to_vec()
            };
            let scale = 1.0 / (width as f32).sqrt();
            let score = |key: usize| f64::from(dot(&q[at..at + width], &part(&k, key)) * scale).exp();
            let scores: Vec<f64> = (0..=history + token).map(score).collect();
            let sum: f64 = scores.iter().sum();
            expected.extend((0..width).map(|d| {
                let terms = scores.iter().enumerate().map(|(key, score)| score * f64::from(part(&v, key)[d]));
                (terms.sum::<f64>() / sum) as f32
            }));
        }
    }
    for order in ORDERS {
        let device = Emulated::emulated(order).unwrap();
        let matrix =
            |rows, values: &[f32]| Matrix::from_slice(&device, rows, values.len() / rows, values).unwrap();
        let (q, keys, values) = (matrix(tokens, &q), matrix(keys_len, &k), matrix(keys_len, &v));
        let mut out = Matrix::zeros(&device, tokens, heads * width).unwrap();
        let mut scores = Matrix::zeros(&device, 1, naive_scores_len(tokens, history, heads)).unwrap();
        let attention = NaiveAttention {
            q: q.view(),
            keys: keys.view(),
            values: values.view(),
            out: out.view_mut(),
            scores: scores.view_mut(),
            history,
            heads,
            groups,
        };
        naive_attention(&device, attention).unwrap();
        benches::close("attention", &out.to_vec(&device).unwrap(), &expected, 1e-5).unwrap();
    }
}

#[test]
fn emulated_ceilings_run() {
    let device = Emulated::emulated(Order::Forward).unwrap();
    let buffer = Matrix::zeros(&device, 3, 1000).unwrap();
    let mut sums = Matrix::zeros(&device, 1, 1).unwrap();
    launch_empty(&device, &buffer).unwrap();
    read_all(&device, &buffer, &mut sums).unwrap();
    assert_eq!(sums.to_vec(&device).unwrap(), [0.0]);
}

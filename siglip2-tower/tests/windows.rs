//! The window kernels of every backend against float64.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use fermi_blas::testing::{Held, assert_close};
use fermi_blas::{Error, Matrix};
use siglip2_tower::{WINDOW_PATCHES, WindowBackend};

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

fn window_attention<B: WindowBackend>(device: &B) {
    // Heads of one column, below, at and beyond a tile of the kernel, and the model's own.
    let sizes = [(0, 2, 8), (1, 1, 1), (1, 3, 7), (2, 2, 64), (1, 1, 130), (5, 2, 72), (8, 16, 72)];
    for (windows, heads, head_dim) in sizes {
        let (rows, width) = (windows * WINDOW_PATCHES, heads * head_dim);
        let qkv = values("qkv", rows * 3 * width);
        let scaling = (head_dim as f32).powf(-0.5);
        let expected = naive_window_attention(&qkv, heads, width, f64::from(scaling));
        let qkv = Held::new(device, rows, 3 * width, &qkv, 5);
        let mut context = Matrix::from_slice(device, rows, width, &vec![7.0; rows * width]).unwrap();
        device.window_attention(qkv.view(), heads, scaling, context.view_mut()).unwrap();
        let context = context.to_vec(device).unwrap();
        // A score is a sum of head_dim products, rounded once a term, and stands in an exponent.
        assert_close("window attention", &context, &expected, 2e-6);
    }
}

/// More windows and heads than a grid has blocks; the emulation would take minutes.
fn many_windows<B: WindowBackend>(device: &B) {
    let (windows, heads) = (65_536 / 16 + 1, 16);
    let (rows, width) = (windows * WINDOW_PATCHES, heads);
    let qkv = values("qkv", rows * 3 * width);
    let expected = naive_window_attention(&qkv, heads, width, 1.0);
    let qkv = Matrix::from_slice(device, rows, 3 * width, &qkv).unwrap();
    let mut context = Matrix::zeros(device, rows, width).unwrap();
    device.window_attention(qkv.view(), heads, 1.0, context.view_mut()).unwrap();
    assert_close("many windows", &context.to_vec(device).unwrap(), &expected, 2e-6);
}

/// Scores far outside what an exponential can hold.
fn large_scores<B: WindowBackend>(device: &B) {
    let (rows, width) = (2 * WINDOW_PATCHES, 6);
    let qkv: Vec<f32> = values("large", rows * 3 * width).iter().map(|x| 100.0 * x).collect();
    let qkv = Matrix::from_slice(device, rows, 3 * width, &qkv).unwrap();
    let mut context = Matrix::zeros(device, rows, width).unwrap();
    device.window_attention(qkv.view(), 2, 1.0, context.view_mut()).unwrap();
    let context = context.to_vec(device).unwrap();
    assert!(context.iter().all(|x| x.is_finite() && x.abs() <= 200.0), "{context:?}");
}

fn mean<B: WindowBackend>(device: &B) {
    for (windows, width) in [(0, 4), (1, 1), (33, 9), (70, 1152)] {
        let (w, x) = (values("w", 4 * windows * width), values("x", windows * width));
        let expected: Vec<f64> = (0..windows * width)
            .map(|index| {
                let (window, column) = (index / width, index % width);
                let sum: f64 = (0..4).map(|patch| f64::from(w[(4 * window + patch) * width + column])).sum();
                f64::from(x[index]) + sum / 4.0
            })
            .collect();
        let w = Held::new(device, 4 * windows, width, &w, 3);
        let mut x = Held::new(device, windows, width, &x, 2);
        device.add_window_mean_in_place(w.view(), x.view_mut()).unwrap();
        assert_close("mean", &x.values(), &expected, 2e-7);
    }
}

fn wrong_sizes<B: WindowBackend>(device: &B) {
    let zeros = |rows, columns| Matrix::<B>::zeros(device, rows, columns).unwrap();
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

/// A module with every test on one device.
macro_rules! window_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        window_tests!(@each [$(#[$attribute])*] $module, $device,
            window_attention many_windows large_scores mean wrong_sizes);
    };
    (emulated $module:ident, $order:ident) => {
        window_tests!(@each [] $module, fermi_blas::Emulated::emulated(fermi_blas::Order::$order).unwrap(),
            window_attention large_scores mean wrong_sizes);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($name:ident)*) => {
        mod $module {
            $(window_tests!(@one $attributes $name, $device);)*
        }
    };
    (@one [$(#[$attribute:meta])*] $name:ident, $device:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            super::$name(&$device);
        }
    };
}

window_tests!(one_thread, fermi_blas::Cpu::with_threads(1).unwrap());
window_tests!(two_threads, fermi_blas::Cpu::with_threads(2).unwrap());

#[cfg(feature = "emulated")]
mod emulated {
    use super::{large_scores, mean, window_attention, wrong_sizes};

    window_tests!(emulated forward, Forward);
    window_tests!(emulated backward, Backward);
    window_tests!(emulated shuffled, Shuffled);
}

#[cfg(feature = "cuda")]
window_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    fermi_blas::Cuda::new(0).unwrap()
);

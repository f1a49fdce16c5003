//! Convolution and gates on any device.

use fermi_blas::Matrix;
use fermi_blas::testing::{Held, uniform};
use gdn_scan::{Activation, CausalConv, Gates, ScanBackend};
use ndarray::{Array2, s};

use crate::common::{assert_near, naive_causal_conv};

fn drawn(name: &str, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_vec((rows, columns), uniform(name, rows * columns)).unwrap()
}

/// Outputs and the inputs that are kept; weight as a checkpoint has it `[C, K]`.
pub(crate) fn convolve<B: ScanBackend>(
    device: &B,
    x: &Array2<f32>,
    weight: &Array2<f32>,
    past: &Array2<f32>,
    (activation, gap): (Option<Activation>, usize),
) -> (Array2<f32>, Array2<f32>) {
    let ((tokens, channels), taps) = (x.dim(), weight.dim().1);
    let values = |x: &Array2<f32>| x.iter().copied().collect::<Vec<f32>>();
    let held = Held::new(device, tokens, channels, &values(x), gap);
    let taps_first = weight.t().iter().copied().collect::<Vec<f32>>();
    let weight = Held::new(device, taps, channels, &taps_first, gap);
    let mut state = Matrix::from_slice(device, taps - 1, channels, &values(past)).unwrap();
    let mut out = Held::new(device, tokens, channels, &vec![f32::NAN; tokens * channels], gap);
    let conv = CausalConv::new(held.view(), weight.view(), state.view_mut(), out.view_mut()).unwrap();
    device.causal_conv(conv.activation(activation)).unwrap();
    let state = state.to_vec(device).unwrap();
    (
        Array2::from_shape_vec((tokens, channels), out.values()).unwrap(),
        Array2::from_shape_vec((taps - 1, channels), state).unwrap(),
    )
}

pub(crate) fn convolutions_cut_anywhere<B: ScanBackend>(device: &B) {
    for taps in 1..=5 {
        let (x, weight) = (drawn("conv.x", 11, 9), drawn("conv.weight", 9, taps));
        let past = drawn("conv.past", taps - 1, 9);
        let (expected, expected_state) = naive_causal_conv(&x, &weight, &past);
        for cuts in [vec![11], vec![1; 11], vec![0, 2, 0, 9], vec![3, 1, 7]] {
            let (mut state, mut start, mut out) = (past.clone(), 0, Vec::new());
            for len in &cuts {
                let part = x.slice(s![start..start + len, ..]).to_owned();
                let (part, next) = convolve(device, &part, &weight, &state, (None, 0));
                out.extend(part);
                (state, start) = (next, start + len);
            }
            let out = Array2::from_shape_vec(expected.dim(), out).unwrap();
            assert_near(&format!("{taps} taps, {cuts:?}"), &out, &expected);
            assert_eq!(state, expected_state, "{taps} taps, {cuts:?}");
        }
    }
}

/// More tokens than one thread takes, more taps than it takes tokens, more channels than a block has threads.
pub(crate) fn convolutions_of_many_tokens<B: ScanBackend>(device: &B) {
    for (tokens, channels, taps) in
        [(16, 3, 4), (17, 3, 4), (50, 5, 4), (33, 2, 2), (70, 4, 20), (5, 4, 20), (2, 300, 4)]
    {
        let (x, weight) = (drawn("many.x", tokens, channels), drawn("many.weight", channels, taps));
        let past = drawn("many.past", taps - 1, channels);
        let (expected, expected_state) = naive_causal_conv(&x, &weight, &past);
        let (out, state) = convolve(device, &x, &weight, &past, (None, 0));
        assert_near(&format!("{tokens} x {channels}, {taps} taps"), &out, &expected);
        assert_eq!(state, expected_state);
    }
}

pub(crate) fn activations<B: ScanBackend>(device: &B) {
    let (x, weight) = (drawn("act.x", 6, 7).mapv(|x| 4.0 * x), drawn("act.weight", 7, 4));
    let past = drawn("act.past", 3, 7);
    let (plain, _) = naive_causal_conv(&x, &weight, &past);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu_tanh = |x: f64| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
        0.5 * x * (1.0 + inner.tanh())
    };
    let cases: [(Activation, &dyn Fn(f64) -> f64); 3] = [
        (Activation::Silu, &|x| x * sigmoid(x)),
        (Activation::Sigmoid, &sigmoid),
        (Activation::GeluTanh, &gelu_tanh),
    ];
    for (activation, f) in cases {
        let (out, _) = convolve(device, &x, &weight, &past, (Some(activation), 0));
        assert_near(&format!("{activation:?}"), &out, &plain.mapv(f));
    }
    // The error function has no equal in the standard library; it lies this near to its tanh form.
    let (out, _) = convolve(device, &x, &weight, &past, (Some(Activation::GeluErf), 0));
    for (actual, x) in out.iter().zip(&plain) {
        assert!((f64::from(*actual) - gelu_tanh(*x)).abs() < 1e-3, "{x}: {actual}");
    }
}

pub(crate) fn convolution_keeps_to_its_columns<B: ScanBackend>(device: &B) {
    for taps in [3, 4] {
        let (x, weight) = (drawn("keep.x", 20, 10), drawn("keep.weight", 10, taps));
        let past = drawn("keep.past", taps - 1, 10);
        let silu = Some(Activation::Silu);
        let dense = convolve(device, &x, &weight, &past, (silu, 0));
        assert_eq!(convolve(device, &x, &weight, &past, (silu, 6)), dense);
    }
}

/// g and beta; a, b `[T, Hv]`, a_log, dt_bias one row.
pub(crate) fn run_gates<B: ScanBackend>(
    device: &B,
    [a, b, a_log, dt_bias]: [&[f32]; 4],
    gap: usize,
) -> (Vec<f32>, Vec<f32>) {
    let heads = a_log.len();
    let tokens = a.len() / heads;
    let held = |rows, values: &[f32]| Held::new(device, rows, heads, values, gap);
    let (a, b, a_log, dt_bias) = (held(tokens, a), held(tokens, b), held(1, a_log), held(1, dt_bias));
    let nothing = vec![f32::NAN; tokens * heads];
    let (mut g, mut beta) = (held(tokens, &nothing), held(tokens, &nothing));
    let (a, b, a_log, dt_bias) = (a.view(), b.view(), a_log.view(), dt_bias.view());
    device.gates(Gates { a, b, a_log, dt_bias, g: g.view_mut(), beta: beta.view_mut() }).unwrap();
    (g.values(), beta.values())
}

pub(crate) fn gates_equal_float64<B: ScanBackend>(device: &B) {
    // Both sides of the threshold of 20, and where e^x is lost beside 1.
    let a = [-200.0, -80.0, -30.0, -16.0, -3.0, -0.1, 0.0, 0.1, 2.0, 15.0, 19.9, 20.0, 20.1, 50.0, 1e4];
    let b = [-1e4, -100.0, -80.0, -20.0, -5.0, -1.0, 0.0, 0.3, 1.0, 5.0, 20.0, 80.0, 100.0, 1e4, 0.5];
    let (a_log, dt_bias) = ([0.5, -3.0, 2.0], [0.0, 0.25, -0.5]);
    let (g, beta) = run_gates(device, [&a, &b, &a_log, &dt_bias], 0);
    for (index, (g, beta)) in g.iter().zip(&beta).enumerate() {
        let (head, x) = (index % 3, f64::from(a[index] + dt_bias[index % 3]));
        let softplus = if x > 20.0 { x } else { x.exp().ln_1p() };
        let (expected, strength) =
            (-f64::from(a_log[head]).exp() * softplus, 1.0 / (1.0 + f64::from(-b[index]).exp()));
        let near = |actual: f32, expected: f64| {
            (f64::from(actual) - expected).abs() <= 1e-6 * expected.abs() + 1e-37
        };
        assert!(near(*g, expected), "g[{index}]: {g:e}, not {expected:e}");
        assert!(near(*beta, strength), "beta[{index}]: {beta:e}, not {strength:e}");
    }
}

pub(crate) fn gates_keep_to_their_columns<B: ScanBackend>(device: &B) {
    for tokens in [0, 1, 9, 90] {
        let [a, b] = ["a", "b"].map(|name| uniform(name, tokens * 4));
        let [a_log, dt_bias] = ["a_log", "dt_bias"].map(|name| uniform(name, 4));
        let dense = run_gates(device, [&a, &b, &a_log, &dt_bias], 0);
        assert_eq!(run_gates(device, [&a, &b, &a_log, &dt_bias], 6), dense);
        assert_eq!(dense.0.len(), tokens * 4);
    }
}

//! Laws of what stands around the scan: convolution, gates, gated norm.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod common;

use common::{assert_near, naive_causal_conv};
use fermi_blas::testing::{Held, uniform};
use fermi_blas::{Cpu, Matrix};
use gdn_scan::{
    Activation, CausalConv, Gates, Scan, ScanBackend, ScanInputs, ScanShape, causal_conv1d, gated_rms_norm,
};
use ndarray::{Array1, Array2, Axis, concatenate, s};
use proptest::prelude::*;

fn drawn(name: &str, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_vec((rows, columns), uniform(name, rows * columns)).unwrap()
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_convolution_may_be_cut_anywhere(
        taps in 1_usize..10, channels in 0_usize..70, cuts in proptest::collection::vec(0_usize..12, 1..5),
        activation in prop_oneof![Just(None), Just(Some(Activation::Silu)), Just(Some(Activation::Sigmoid))],
    ) {
        let tokens = cuts.iter().sum();
        let (x, weight) = (drawn("conv.x", tokens, channels), drawn("conv.weight", channels, taps));
        let mut state = drawn("conv.past", taps - 1, channels);
        let (expected, expected_state) = naive_causal_conv(&x, &weight, &state);
        let expected = expected.mapv(|y| match activation {
            None => y,
            Some(Activation::Silu) => silu(y),
            Some(_) => 1.0 / (1.0 + (-y).exp()),
        });
        let (mut out, mut start) = (Array2::zeros((0, channels)), 0);
        for len in cuts {
            let part = x.slice(s![start..start + len, ..]);
            let part = causal_conv1d(part, weight.view(), &mut state, activation).unwrap();
            out = concatenate![Axis(0), out, part];
            start += len;
        }
        assert_near("out", &out, &expected);
        prop_assert_eq!(state, expected_state);
    }
}

#[test]
fn the_gated_norm_is_not_centred_at_one() {
    let (x, z) = (drawn("norm.x", 5, 24), drawn("norm.z", 5, 24));
    let weight = Array1::from(uniform("norm.weight", 24));
    let out = gated_rms_norm(x.view(), z.view(), weight.view(), 1e-6).unwrap();
    let expected = Array2::from_shape_fn((5, 24), |(r, c)| {
        let mean = x.row(r).iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 24.0;
        f64::from(weight[c]) * f64::from(x[[r, c]]) / (mean + 1e-6).sqrt() * silu(f64::from(z[[r, c]]))
    });
    assert_near("gated norm", &out, &expected);
    let zero = gated_rms_norm(x.view(), z.view(), Array1::zeros(24).view(), 1e-6).unwrap();
    assert!(zero.iter().all(|x| *x == 0.0));
}

/// In a model, inputs are columns of wider matrices: neighbours are neither read nor written.
#[test]
fn views_may_have_gaps() {
    let device = Cpu::with_threads(2).unwrap();
    let shape = ScanShape::new(2, 4, 16, 24).unwrap();
    let (tokens, keys, values) = (70, 32, 96);
    let held = |name: &str, columns: usize, gap: usize, scale: f32, shift: f32| {
        let drawn: Vec<f32> = uniform(name, tokens * columns).iter().map(|x| x * scale + shift).collect();
        Held::new(&device, tokens, columns, &drawn, gap)
    };
    let mut results = Vec::new();
    for gap in [0, 10] {
        let (q, k) = (held("gap.q", keys, gap, 1.0, 0.0), held("gap.k", keys, gap, 1.0, 0.0));
        let v = held("gap.v", values, gap, 1.0, 0.0);
        let (g, beta) = (held("gap.g", 4, gap, 0.5, -0.5), held("gap.beta", 4, gap, 0.5, 0.5));
        let inputs = ScanInputs { q: q.view(), k: k.view(), v: v.view(), g: g.view(), beta: beta.view() };
        for chunk_len in [None, Some(16), Some(64)] {
            let mut out = held("gap.out", values, gap, 1.0, 0.0);
            let mut state = Matrix::from_slice(&device, 64, 24, &uniform("gap.s0", 64 * 24)).unwrap();
            let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap();
            match chunk_len {
                None => device.recurrent_forward(scan).unwrap(),
                Some(chunk_len) => {
                    let len = device.chunk_scratch_len(shape, tokens, chunk_len);
                    let mut scratch = Matrix::from_slice(&device, 1, len, &vec![f32::NAN; len]).unwrap();
                    device.chunk_forward(scan, chunk_len, scratch.view_mut()).unwrap();
                }
            }
            results.push((chunk_len, out.values(), state.to_vec(&device).unwrap()));
        }
    }
    let (whole, with_gaps) = results.split_at(3);
    assert_eq!(whole, with_gaps);
}

#[test]
fn convolution_and_gates_keep_to_their_columns() {
    let device = Cpu::with_threads(2).unwrap();
    let mut results = Vec::new();
    for gap in [0, 6] {
        let held = |name: &str, rows, columns| {
            Held::new(&device, rows, columns, &uniform(name, rows * columns), gap)
        };
        let (x, weight) = (held("keep.x", 9, 40), held("keep.weight", 4, 40));
        let mut state = Matrix::from_slice(&device, 3, 40, &uniform("keep.past", 120)).unwrap();
        let mut out = held("keep.out", 9, 40);
        let conv = CausalConv::new(x.view(), weight.view(), state.view_mut(), out.view_mut()).unwrap();
        device.causal_conv(conv).unwrap();
        let (a, b) = (held("keep.a", 9, 4), held("keep.b", 9, 4));
        let (a_log, dt_bias) = (held("keep.a_log", 1, 4), held("keep.dt_bias", 1, 4));
        let (mut g, mut beta) = (held("keep.g", 9, 4), held("keep.beta", 9, 4));
        let (a, b, a_log, dt_bias) = (a.view(), b.view(), a_log.view(), dt_bias.view());
        device.gates(Gates { a, b, a_log, dt_bias, g: g.view_mut(), beta: beta.view_mut() }).unwrap();
        results.push((out.values(), state.to_vec(&device).unwrap(), g.values(), beta.values()));
    }
    assert_eq!(results[0], results[1]);
}

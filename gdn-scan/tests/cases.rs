//! Faults that users of other implementations reported, by their letters.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod common;

use common::{Inputs, MODES, Sizes, TOLERANCE, assert_near, naive_gated_delta_rule};
use gdn_scan::{
    Error, Mode, Options, ScanArgs, ScanShape, causal_conv1d, gated_delta_rule, gated_delta_rule_with,
};
use ndarray::{Array2, Array3, Axis, array, concatenate, s};

#[test]
fn c2_the_state_is_handed_on_at_every_cut() {
    for from_zero in [false, true] {
        let mut inputs = Inputs::new("c2", Sizes::new(100, (2, 2), (32, 32)));
        if from_zero {
            inputs.s0.fill(0.0);
        }
        let (expected, expected_state) = naive_gated_delta_rule(&inputs, Options::default());
        for cuts in [vec![100], vec![37, 63], vec![64, 36], vec![99, 1], vec![1; 100]] {
            for mode in [Mode::Chunked { chunk_len: 64 }, Mode::Sequential] {
                let mut state = inputs.s0.clone();
                let (mut start, mut out) = (0, Array3::zeros((0, 2, 32)));
                for len in &cuts {
                    let part = gated_delta_rule(inputs.range(start, start + len), &mut state, mode).unwrap();
                    out = concatenate![Axis(0), out, part];
                    start += len;
                }
                assert_near(&format!("{cuts:?} out"), &out, &expected);
                assert_near(&format!("{cuts:?} state"), &state, &expected_state);
            }
        }
    }
}

#[test]
fn c2_no_tokens_return_the_state() {
    let inputs = Inputs::new("c2.empty", Sizes::new(0, (2, 2), (16, 16)));
    for mode in MODES {
        let (out, state) = inputs.run(mode, Options::default());
        assert_eq!(out.dim(), (0, 2, 16));
        assert_eq!(state, inputs.s0);
    }
}

#[test]
fn c3_strong_decays_stay_finite_and_exact() {
    let base = Inputs::new("c3", Sizes::new(64, (2, 2), (32, 32)));
    let small = base.g.mapv(|g| 0.099 * g - 0.001);
    let single = |at: usize, strong: f32, others: &Array2<f32>| {
        let mut g = others.clone();
        g.slice_mut(s![at, ..]).fill(strong);
        g
    };
    let zeros = Array2::zeros(base.g.dim());
    for g in [
        zeros.mapv(|_: f32| -2.0),
        zeros.mapv(|_| -30.0),
        zeros.mapv(|_| -1e4),
        zeros.mapv(|_| f32::NEG_INFINITY),
        single(20, -90.0, &zeros),
        single(0, -1e4, &small),
        single(7, -1e4, &small),
        single(63, -1e4, &small),
        zeros,
    ] {
        Inputs { g, ..base.clone() }.check(&MODES);
    }
}

#[test]
fn c3_a_strong_decay_among_small_ones_loses_nothing_in_a_long_chunk() {
    let mut inputs = Inputs::new("c3.long", Sizes::new(400, (1, 1), (32, 32)));
    inputs.g.mapv_inplace(|g| 0.099 * g - 0.001);
    for t in [3, 100, 250] {
        inputs.g[[t, 0]] = -1e4;
    }
    inputs.check(&[Mode::Chunked { chunk_len: 64 }, Mode::Chunked { chunk_len: 400 }]);
}

#[test]
fn c3_write_strengths_zero_and_one() {
    for beta in [0.0, 1.0] {
        let mut inputs = Inputs::new("c3.beta", Sizes::new(130, (2, 2), (32, 32)));
        inputs.beta.fill(beta);
        inputs.check(&MODES);
        inputs.g.fill(0.0);
        inputs.check(&MODES);
    }
}

#[test]
fn c5_value_heads_share_key_heads_in_order() {
    let inputs = Inputs::new("c5", Sizes::new(20, (2, 4), (8, 8)));
    for mode in [Mode::Sequential, Mode::Chunked { chunk_len: 16 }] {
        let (out, state) = inputs.run(mode, Options::default());
        for (value_head, key_head) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            let args = inputs.args();
            let (keys, values) = (key_head..key_head + 1, value_head..value_head + 1);
            let alone = ScanArgs {
                q: args.q.slice_move(s![.., keys.clone(), ..]),
                k: args.k.slice_move(s![.., keys, ..]),
                v: args.v.slice_move(s![.., values.clone(), ..]),
                g: args.g.slice_move(s![.., values.clone()]),
                beta: args.beta.slice_move(s![.., values.clone()]),
            };
            let mut alone_state = inputs.s0.slice(s![values.clone(), .., ..]).to_owned();
            let alone_out = gated_delta_rule(alone, &mut alone_state, mode).unwrap();
            assert_eq!(alone_out, out.slice(s![.., values.clone(), ..]));
            assert_eq!(alone_state, state.slice(s![values, .., ..]));
        }
    }
}

#[test]
fn c5_heads_that_do_not_divide_are_an_error() {
    for (key_heads, value_heads) in [(2, 3), (3, 2), (0, 1)] {
        let error = ScanShape::new(key_heads, value_heads, 8, 8).unwrap_err();
        assert!(
            matches!(error, Error::HeadGroups { key_heads: k, value_heads: v } if (k, v) == (key_heads, value_heads)),
            "{error}"
        );
    }
    let inputs = Inputs::new("c5.odd", Sizes::new(4, (2, 3), (8, 8)));
    let mut state = inputs.s0.clone();
    let error = gated_delta_rule(inputs.args(), &mut state, Mode::Sequential).unwrap_err();
    assert!(matches!(error, Error::HeadGroups { key_heads: 2, value_heads: 3 }), "{error}");
}

#[test]
fn x1_decay_comes_first_then_the_correction_then_the_read() {
    let one = Array3::ones((3, 1, 1));
    let v = array![[[1.0]], [[0.0]], [[2.0]]];
    let g = Array2::from_elem((3, 1), 0.5_f32.ln());
    let beta = array![[0.5], [0.5], [1.0]];
    let args = ScanArgs { q: one.view(), k: one.view(), v: v.view(), g: g.view(), beta: beta.view() };
    for mode in MODES {
        let mut state = Array3::zeros((1, 1, 1));
        let options = Options { scale: Some(1.0), l2_normalize: None };
        let out = gated_delta_rule_with(args, &mut state, mode, options).unwrap();
        assert_near("out", &out, &array![[[0.5]], [[0.125]], [[2.0]]]);
        assert_near("state", &state, &array![[[2.0]]]);
    }
}

#[test]
fn d1_prompts_shorter_than_the_kernel() {
    let weight = array![[1.0, 10.0, 100.0, 1000.0]];
    let x = array![[5.0], [7.0], [2.0], [3.0]];
    for cuts in [vec![4], vec![1, 3], vec![2, 2], vec![3, 1], vec![1, 1, 1, 1], vec![0, 1, 0, 3]] {
        let mut state = Array2::zeros((3, 1));
        let (mut out, mut start) = (Vec::new(), 0);
        for len in &cuts {
            let part = x.slice(s![start..start + len, ..]);
            out.extend(causal_conv1d(part, weight.view(), &mut state, None).unwrap());
            start += len;
            if start == 1 {
                assert_eq!(state, array![[0.0], [0.0], [5.0]]);
            }
        }
        let worst = out.iter().zip([5000.0, 7500.0, 2750.0, 3275.0]).map(|(a, b): (&f32, f32)| (a - b).abs());
        assert!(f64::from(worst.fold(0.0, f32::max)) <= TOLERANCE, "{cuts:?}: {out:?}");
        assert_eq!(state, array![[7.0], [2.0], [3.0]]);
    }
}

//! Laws of the scan: every mode equals float64, a sequence may be cut anywhere, sizes may be anything.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod common;

use common::{Inputs, MODES, Sizes, assert_near, naive_gated_delta_rule};
use gdn_scan::{Mode, Options, gated_delta_rule, step};
use ndarray::{Array3, Axis, concatenate};
use proptest::prelude::*;

#[test]
fn every_mode_equals_float64_at_the_models_width() {
    for tokens in [1, 5, 15, 16, 17, 63, 64, 65, 130] {
        Inputs::new("width", Sizes::new(tokens, (2, 2), (128, 128))).check(&MODES);
    }
}

#[test]
fn grouped_heads_and_odd_widths() {
    Inputs::new("odd", Sizes::new(70, (2, 6), (24, 40))).check(&MODES);
    Inputs::new("odder", Sizes::new(67, (1, 3), (7, 33))).check(&MODES);
    Inputs::new("narrow", Sizes::new(20, (1, 1), (1, 1))).check(&MODES);
    Inputs::new("flat", Sizes::new(40, (3, 3), (2, 200))).check(&MODES);
}

#[test]
fn options_are_what_they_say() {
    let inputs = Inputs::new("options", Sizes::new(40, (2, 2), (8, 8)));
    // Keys as they are may be longer than 1, where the rule itself is unstable: small ones show what is meant.
    let inputs = Inputs { k: inputs.k.mapv(|x| 0.4 * x), ..inputs };
    inputs.check_with(&MODES, Options { scale: Some(0.25), l2_normalize: None });
    inputs.check_with(&MODES, Options { scale: Some(3.0), ..Options::default() });
}

#[test]
fn one_token_is_a_step() {
    let inputs = Inputs::new("step", Sizes::new(6, (1, 2), (12, 20)));
    let (expected, expected_state) = naive_gated_delta_rule(&inputs, Options::default());
    let mut state = inputs.s0.clone();
    for t in 0..6 {
        let args = inputs.args();
        let token = gdn_scan::StepArgs {
            q: args.q.index_axis_move(Axis(0), t),
            k: args.k.index_axis_move(Axis(0), t),
            v: args.v.index_axis_move(Axis(0), t),
            g: args.g.index_axis_move(Axis(0), t),
            beta: args.beta.index_axis_move(Axis(0), t),
        };
        let out = step(token, &mut state).unwrap();
        assert_near("out", &out, &expected.index_axis(Axis(0), t).to_owned());
    }
    assert_near("state", &state, &expected_state);
}

#[test]
fn sizes_of_zero() {
    for sizes in [
        Sizes::new(0, (2, 4), (8, 8)),
        Sizes::new(3, (2, 0), (8, 8)),
        Sizes::new(3, (0, 0), (8, 8)),
        Sizes::new(3, (2, 2), (0, 8)),
        Sizes::new(3, (2, 2), (8, 0)),
    ] {
        let inputs = Inputs::new("zero", sizes);
        for mode in MODES {
            let (out, state) = inputs.run(mode, Options::default());
            assert_eq!(out.dim(), inputs.v.dim());
            assert!(out.iter().all(|x| *x == 0.0), "{sizes:?} {mode:?}");
            if sizes.tokens == 0 {
                assert_eq!(state, inputs.s0);
            }
        }
    }
}

#[test]
fn arrays_of_any_layout() {
    let inputs = Inputs::new("layout", Sizes::new(33, (2, 2), (8, 12)));
    let (expected, expected_state) = inputs.run(Mode::default(), Options::default());
    let turned =
        Inputs { q: turn(&inputs.q), k: turn(&inputs.k), v: turn(&inputs.v), s0: turn(&inputs.s0), ..inputs };
    assert!(!turned.q.is_standard_layout());
    assert_eq!(turned.run(Mode::default(), Options::default()), (expected, expected_state));
}

/// The same array, held in column-major order.
fn turn(x: &Array3<f32>) -> Array3<f32> {
    x.t().as_standard_layout().into_owned().reversed_axes()
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Sequential), (1_usize..90).prop_map(|chunk_len| Mode::Chunked { chunk_len })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_size_in_any_mode_equals_float64(
        tokens in 0_usize..90, heads in 1_usize..3, group in 1_usize..3, key in 1_usize..40, value in 1_usize..70,
        mode in mode(), seed in 0_u32..1000, strength in 0.0_f32..50.0,
    ) {
        let mut inputs = Inputs::new(
            &format!("any.{seed}"), Sizes::new(tokens, (heads, heads * group), (key, value)));
        inputs.g.mapv_inplace(|g| g * strength);
        inputs.check(&[mode]);
    }

    #[test]
    fn a_sequence_may_be_cut_anywhere(
        cuts in proptest::collection::vec(0_usize..40, 1..6), modes in proptest::collection::vec(mode(), 6),
        seed in 0_u32..1000,
    ) {
        let tokens = cuts.iter().sum();
        let inputs = Inputs::new(&format!("cut.{seed}"), Sizes::new(tokens, (1, 2), (16, 24)));
        let (expected, expected_state) = naive_gated_delta_rule(&inputs, Options::default());
        let (mut state, mut start, mut out) = (inputs.s0.clone(), 0, Array3::zeros((0, 2, 24)));
        for (len, mode) in cuts.iter().zip(modes) {
            let part = gated_delta_rule(inputs.range(start, start + len), &mut state, mode).unwrap();
            out = concatenate![Axis(0), out, part];
            start += len;
        }
        assert_near("out", &out, &expected);
        assert_near("state", &state, &expected_state);
    }
}

//! Against transformers' recurrence in float64; `tests/data/README.md` says how the files are made.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod common;

use common::golden::{check_convolutions, check_gates, check_scan, matrix, tensor};
use common::{Inputs, MODES, assert_near};
use gdn_scan::{GateArgs, Options, causal_conv1d, gates};
use ndarray::Array3;
use safetensors::SafeTensors;

#[test]
fn every_case_in_every_mode() {
    check_scan(&MODES, |inputs, mode| inputs.run(mode, Options::default()));
}

#[test]
fn convolutions_of_every_length() {
    check_convolutions(|x, weight, past, activation| {
        let mut state = past.clone();
        let out = causal_conv1d(x.view(), weight.view(), &mut state, activation).unwrap();
        (out, state)
    });
}

#[test]
fn gates_of_any_size() {
    check_gates(|a, b, a_log, dt_bias| {
        let args = GateArgs { a: a.view(), b: b.view(), a_log: a_log.view(), dt_bias: dt_bias.view() };
        gates(args).unwrap()
    });
}

#[test]
fn the_examples_input_gives_its_output() {
    let file = SafeTensors::deserialize(include_bytes!("data/example.safetensors")).unwrap();
    let cube = |part: &str| {
        let name = format!("grouped.{part}");
        let shape = file.tensor(&name).unwrap().shape().to_vec();
        Array3::from_shape_vec((shape[0], shape[1], shape[2]), tensor(&file, &name)).unwrap()
    };
    let inputs = Inputs {
        q: cube("q"),
        k: cube("k"),
        v: cube("v"),
        g: matrix(&file, "grouped.g"),
        beta: matrix(&file, "grouped.beta"),
        s0: cube("s0"),
    };
    for mode in MODES {
        let (out, state) = inputs.run(mode, Options::default());
        assert_near("out", &out, &cube("out").mapv(f64::from));
        assert_near("s1", &state, &cube("s1").mapv(f64::from));
    }
}

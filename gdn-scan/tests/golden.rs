//! Against transformers' recurrence in float64; `tests/data/README.md` says how the files are made.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod common;

use common::{Inputs, MODES, TOLERANCE};
use fermi_blas::synthetic::{self, Distribution};
use gdn_scan::{Activation, GateArgs, Options, causal_conv1d, gates};
use ndarray::{Array1, Array2, Array3};
use safetensors::SafeTensors;
use serde_json::Value;

const SEED: u64 = 11;
const ONE: Distribution = Distribution { center: 0.0, scale: 1.0 };

fn tensor(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let bytes = file.tensor(name).unwrap().data().to_vec();
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn matrix(file: &SafeTensors<'_>, name: &str) -> Array2<f32> {
    let shape = file.tensor(name).unwrap().shape().to_vec();
    Array2::from_shape_vec((shape[0], shape[1]), tensor(file, name)).unwrap()
}

/// What the metadata says of one sampled tensor.
struct Sample {
    stride: usize,
    largest: f64,
}

#[track_caller]
fn assert_sample<'v>(what: &str, actual: impl Iterator<Item = &'v f32>, expected: &[f32], sample: &Sample) {
    let mut count = 0;
    for (actual, expected) in actual.step_by(sample.stride).zip(expected) {
        let error = f64::from((actual - expected).abs()) / sample.largest;
        assert!(error <= TOLERANCE, "{what}[{}]: {error:.1e} off", count * sample.stride);
        count += 1;
    }
    assert_eq!(count, expected.len(), "{what}: values");
}

#[test]
fn every_case_in_every_mode() {
    let bytes = include_bytes!("data/scan.safetensors");
    let file = SafeTensors::deserialize(bytes).unwrap();
    let metadata = SafeTensors::read_metadata(bytes).unwrap().1.metadata().clone().unwrap();
    let json = |key: &str| -> Value { serde_json::from_str(&metadata[key]).unwrap() };
    let seed = json("seed").as_u64().unwrap();
    let cases = json("cases");
    assert!(cases.as_object().unwrap().len() >= 16);
    for (name, case) in cases.as_object().unwrap() {
        let size = |key: &str| case[key].as_u64().unwrap() as usize;
        let (tokens, key_heads, value_heads) = (size("T"), size("Hk"), size("Hv"));
        let (key_width, value_width) = (size("Dk"), size("Dv"));
        let cube = |part: &str, shape: (usize, usize, usize)| {
            let values = synthetic::values(&format!("{name}.{part}"), shape.0 * shape.1 * shape.2, seed, ONE);
            Array3::from_shape_vec(shape, values).unwrap()
        };
        let state_shape = (value_heads, key_width, value_width);
        let inputs = Inputs {
            q: cube("q", (tokens, key_heads, key_width)),
            k: cube("k", (tokens, key_heads, key_width)),
            v: cube("v", (tokens, value_heads, value_width)),
            g: matrix(&file, &format!("{name}.g")),
            beta: matrix(&file, &format!("{name}.beta")),
            s0: if case["state"].as_bool().unwrap() {
                cube("s0", state_shape)
            } else {
                Array3::zeros(state_shape)
            },
        };
        for mode in MODES {
            let (out, state) = inputs.run(mode, Options::default());
            for (part, actual) in [("out", &out), ("s1", &state)] {
                let key = format!("{name}.{part}");
                let facts = json(&key);
                let sample = Sample {
                    stride: facts["stride"].as_u64().unwrap() as usize,
                    largest: facts["absmax"].as_f64().unwrap(),
                };
                assert_sample(&format!("{key} {mode:?}"), actual.iter(), &tensor(&file, &key), &sample);
            }
        }
    }
}

/// Relative to the largest magnitude.
#[track_caller]
fn assert_matrix(what: &str, actual: &Array2<f32>, expected: &Array2<f32>) {
    common::assert_near(what, actual, &expected.mapv(f64::from));
}

#[test]
fn convolutions_of_every_length() {
    let file = SafeTensors::deserialize(include_bytes!("data/front.safetensors")).unwrap();
    for (name, taps) in [("k1", 1), ("k2", 2), ("k3", 3), ("k4", 4), ("k8", 8), ("short", 4)] {
        let plain = matrix(&file, &format!("{name}.plain"));
        let (tokens, channels) = plain.dim();
        let drawn = |part: &str, rows: usize, columns: usize| {
            let values = synthetic::values(&format!("{name}.{part}"), rows * columns, SEED, ONE);
            Array2::from_shape_vec((rows, columns), values).unwrap()
        };
        let (x, past) = (drawn("x", tokens, channels), drawn("past", taps - 1, channels));
        let weight = drawn("weight", channels, taps);
        let run = |activation| {
            let mut state = past.clone();
            let out = causal_conv1d(x.view(), weight.view(), &mut state, activation).unwrap();
            (out, state)
        };
        let (out, state) = run(None);
        assert_matrix(name, &out, &plain);
        let kept = tensor(&file, &format!("{name}.state"));
        assert_eq!(state.iter().copied().collect::<Vec<_>>(), kept, "{name}: state");
        assert_matrix(name, &run(Some(Activation::Silu)).0, &matrix(&file, &format!("{name}.silu")));
    }
}

#[test]
fn gates_of_any_size() {
    let file = SafeTensors::deserialize(include_bytes!("data/front.safetensors")).unwrap();
    let (g, beta) = (matrix(&file, "gates.g"), matrix(&file, "gates.beta"));
    let drawn = |name: &str, count, center, scale| {
        Array1::from(synthetic::values(name, count, SEED, Distribution { center, scale }))
    };
    let (a, b) = (drawn("gates.a", 240, 0.0, 30.0), drawn("gates.b", 240, 0.0, 30.0));
    let (a_log, dt_bias) = (drawn("gates.a_log", 6, 1.0, 1.0), drawn("gates.dt_bias", 6, -3.0, 1.5));
    let wide = |x: &Array1<f32>| x.clone().into_shape_with_order((40, 6)).unwrap();
    let (a, b) = (wide(&a), wide(&b));
    let args = GateArgs { a: a.view(), b: b.view(), a_log: a_log.view(), dt_bias: dt_bias.view() };
    let (actual_g, actual_beta) = gates(args).unwrap();
    assert_matrix("g", &actual_g, &g);
    assert_matrix("beta", &actual_beta, &beta);
    // A small g is a decay near 1, which many tokens share: it has to be right by itself, not only beside large ones.
    for (actual, expected) in actual_g.iter().zip(&g) {
        assert!((actual - expected).abs() <= 1e-5 * expected.abs() + 1e-30, "{actual} {expected}");
    }
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
        common::assert_near("out", &out, &cube("out").mapv(f64::from));
        common::assert_near("s1", &state, &cube("s1").mapv(f64::from));
    }
}

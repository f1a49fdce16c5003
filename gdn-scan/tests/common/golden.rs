//! Results of transformers' recurrence in float64; `tests/data/README.md` says how the files are made.

use fermi_blas::synthetic::{self, Distribution};
use gdn_scan::{Activation, Mode};
use ndarray::{Array1, Array2, Array3};
use safetensors::SafeTensors;
use serde_json::Value;

use super::{Inputs, TOLERANCE, assert_near};

const SEED: u64 = 11;
const ONE: Distribution = Distribution { center: 0.0, scale: 1.0 };

const SCAN: &[u8] = include_bytes!("../data/scan.safetensors");
const FRONT: &[u8] = include_bytes!("../data/front.safetensors");

pub(crate) fn tensor(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let bytes = file.tensor(name).unwrap().data().to_vec();
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

pub(crate) fn matrix(file: &SafeTensors<'_>, name: &str) -> Array2<f32> {
    let shape = file.tensor(name).unwrap().shape().to_vec();
    Array2::from_shape_vec((shape[0], shape[1]), tensor(file, name)).unwrap()
}

/// Some values of a result, and the largest of all.
struct Sample {
    name: String,
    values: Vec<f32>,
    stride: usize,
    largest: f64,
}

impl Sample {
    #[track_caller]
    fn check(&self, mode: Mode, actual: &Array3<f32>) {
        let mut count = 0;
        for (actual, expected) in actual.iter().step_by(self.stride).zip(&self.values) {
            let error = f64::from((actual - expected).abs()) / self.largest;
            let at = count * self.stride;
            assert!(error <= TOLERANCE, "{} {mode:?}[{at}]: {error:.1e} off", self.name);
            count += 1;
        }
        assert_eq!(count, self.values.len(), "{}: values", self.name);
    }
}

/// Checks a scan, given as outputs and the final state, on every case in every one of `modes`.
#[track_caller]
pub(crate) fn check_scan(modes: &[Mode], run: impl Fn(&Inputs, Mode) -> (Array3<f32>, Array3<f32>)) {
    let file = SafeTensors::deserialize(SCAN).unwrap();
    let metadata = SafeTensors::read_metadata(SCAN).unwrap().1.metadata().clone().unwrap();
    let json = |key: &str| -> Value { serde_json::from_str(&metadata[key]).unwrap() };
    let seed = json("seed").as_u64().unwrap();
    let cases = json("cases");
    assert!(cases.as_object().unwrap().len() >= 16);
    for (name, case) in cases.as_object().unwrap() {
        let inputs = inputs(&file, seed, name, case);
        let [out, state] = ["out", "s1"].map(|part| {
            let name = format!("{name}.{part}");
            let facts = json(&name);
            let (stride, largest) = (&facts["stride"], &facts["absmax"]);
            Sample {
                values: tensor(&file, &name),
                stride: stride.as_u64().unwrap() as usize,
                largest: largest.as_f64().unwrap(),
                name,
            }
        });
        for &mode in modes {
            let (actual_out, actual_state) = run(&inputs, mode);
            out.check(mode, &actual_out);
            state.check(mode, &actual_state);
        }
    }
}

fn inputs(file: &SafeTensors<'_>, seed: u64, name: &str, case: &Value) -> Inputs {
    let size = |key: &str| case[key].as_u64().unwrap() as usize;
    let (tokens, key_heads, value_heads) = (size("T"), size("Hk"), size("Hv"));
    let (key_width, value_width) = (size("Dk"), size("Dv"));
    let cube = |part: &str, shape: (usize, usize, usize)| {
        let values = synthetic::values(&format!("{name}.{part}"), shape.0 * shape.1 * shape.2, seed, ONE);
        Array3::from_shape_vec(shape, values).unwrap()
    };
    let state_shape = (value_heads, key_width, value_width);
    Inputs {
        q: cube("q", (tokens, key_heads, key_width)),
        k: cube("k", (tokens, key_heads, key_width)),
        v: cube("v", (tokens, value_heads, value_width)),
        g: matrix(file, &format!("{name}.g")),
        beta: matrix(file, &format!("{name}.beta")),
        s0: if case["state"].as_bool().unwrap() {
            cube("s0", state_shape)
        } else {
            Array3::zeros(state_shape)
        },
    }
}

/// Checks a convolution, given as outputs and the kept inputs, of x `[T, C]`, weight `[C, K]` and past inputs `[K − 1, C]`.
#[track_caller]
pub(crate) fn check_convolutions(
    run: impl Fn(&Array2<f32>, &Array2<f32>, &Array2<f32>, Option<Activation>) -> (Array2<f32>, Array2<f32>),
) {
    let file = SafeTensors::deserialize(FRONT).unwrap();
    for (name, taps) in [("k1", 1), ("k2", 2), ("k3", 3), ("k4", 4), ("k8", 8), ("short", 4)] {
        let plain = matrix(&file, &format!("{name}.plain"));
        let (tokens, channels) = plain.dim();
        let drawn = |part: &str, rows: usize, columns: usize| {
            let values = synthetic::values(&format!("{name}.{part}"), rows * columns, SEED, ONE);
            Array2::from_shape_vec((rows, columns), values).unwrap()
        };
        let (x, past) = (drawn("x", tokens, channels), drawn("past", taps - 1, channels));
        let weight = drawn("weight", channels, taps);
        let (out, state) = run(&x, &weight, &past, None);
        assert_near(name, &out, &plain.mapv(f64::from));
        let kept = tensor(&file, &format!("{name}.state"));
        assert_eq!(state.iter().copied().collect::<Vec<_>>(), kept, "{name}: state");
        let silu = matrix(&file, &format!("{name}.silu")).mapv(f64::from);
        assert_near(name, &run(&x, &weight, &past, Some(Activation::Silu)).0, &silu);
    }
}

/// Checks gates, given as g and β, of a, b `[T, Hv]`, a_log and dt_bias `[Hv]`.
#[track_caller]
pub(crate) fn check_gates(
    run: impl Fn(&Array2<f32>, &Array2<f32>, &Array1<f32>, &Array1<f32>) -> (Array2<f32>, Array2<f32>),
) {
    let file = SafeTensors::deserialize(FRONT).unwrap();
    let (g, beta) = (matrix(&file, "gates.g"), matrix(&file, "gates.beta"));
    let drawn = |name: &str, count, center, scale| {
        Array1::from(synthetic::values(name, count, SEED, Distribution { center, scale }))
    };
    let (a, b) = (drawn("gates.a", 240, 0.0, 30.0), drawn("gates.b", 240, 0.0, 30.0));
    let (a_log, dt_bias) = (drawn("gates.a_log", 6, 1.0, 1.0), drawn("gates.dt_bias", 6, -3.0, 1.5));
    let wide = |x: Array1<f32>| x.into_shape_with_order((40, 6)).unwrap();
    let (actual_g, actual_beta) = run(&wide(a), &wide(b), &a_log, &dt_bias);
    assert_near("g", &actual_g, &g.mapv(f64::from));
    assert_near("beta", &actual_beta, &beta.mapv(f64::from));
    // A small g is a decay near 1, which many tokens share: it has to be right by itself, not only beside large ones.
    for (actual, expected) in actual_g.iter().zip(&g) {
        assert!((actual - expected).abs() <= 1e-5 * expected.abs() + 1e-30, "{actual} {expected}");
    }
}

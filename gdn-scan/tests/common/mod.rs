//! Inputs, a plain float64 oracle and the tolerance that all tests here share.
#![allow(dead_code, reason = "every test file uses its own part")]

pub(crate) mod golden;

use fermi_blas::testing::uniform;
use gdn_scan::{L2_EPS, Mode, Options, ScanArgs, gated_delta_rule_with};
use ndarray::{Array2, Array3, s};

/// Relative to the largest magnitude of a tensor: what the model above needs of a scan, about 80 roundings of float32.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// Sizes of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) tokens: usize,
    pub(crate) key_heads: usize,
    pub(crate) value_heads: usize,
    pub(crate) key_width: usize,
    pub(crate) value_width: usize,
}

impl Sizes {
    pub(crate) fn new(tokens: usize, heads: (usize, usize), widths: (usize, usize)) -> Self {
        Self { tokens, key_heads: heads.0, value_heads: heads.1, key_width: widths.0, value_width: widths.1 }
    }
}

/// Inputs of a scan and the state that it starts from.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) q: Array3<f32>,
    pub(crate) k: Array3<f32>,
    pub(crate) v: Array3<f32>,
    pub(crate) g: Array2<f32>,
    pub(crate) beta: Array2<f32>,
    pub(crate) s0: Array3<f32>,
}

fn cube(name: &str, shape: (usize, usize, usize)) -> Array3<f32> {
    Array3::from_shape_vec(shape, uniform(name, shape.0 * shape.1 * shape.2)).unwrap()
}

impl Inputs {
    /// Random values, decays between exp(-1) and 1, from a random state.
    pub(crate) fn new(name: &str, sizes: Sizes) -> Self {
        let Sizes { tokens, key_heads, value_heads, key_width, value_width } = sizes;
        let gate = |part: &str| {
            let values = uniform(&format!("{name}.{part}"), tokens * value_heads);
            Array2::from_shape_vec((tokens, value_heads), values).unwrap()
        };
        Self {
            q: cube(&format!("{name}.q"), (tokens, key_heads, key_width)),
            k: cube(&format!("{name}.k"), (tokens, key_heads, key_width)),
            v: cube(&format!("{name}.v"), (tokens, value_heads, value_width)),
            g: gate("g").mapv(|x| 0.5 * (x - 1.0)),
            beta: gate("beta").mapv(|x| 0.5 * (x + 1.0)),
            s0: cube(&format!("{name}.s0"), (value_heads, key_width, value_width)),
        }
    }

    pub(crate) fn args(&self) -> ScanArgs<'_> {
        self.range(0, self.g.dim().0)
    }

    /// The tokens from `start` to before `end`.
    pub(crate) fn range(&self, start: usize, end: usize) -> ScanArgs<'_> {
        ScanArgs {
            q: self.q.slice(s![start..end, .., ..]),
            k: self.k.slice(s![start..end, .., ..]),
            v: self.v.slice(s![start..end, .., ..]),
            g: self.g.slice(s![start..end, ..]),
            beta: self.beta.slice(s![start..end, ..]),
        }
    }

    /// Output and final state of this crate.
    pub(crate) fn run(&self, mode: Mode, options: Options) -> (Array3<f32>, Array3<f32>) {
        let mut state = self.s0.clone();
        let out = gated_delta_rule_with(self.args(), &mut state, mode, options).unwrap();
        (out, state)
    }

    /// Checks every mode against the oracle.
    #[track_caller]
    pub(crate) fn check(&self, modes: &[Mode]) {
        self.check_with(modes, Options::default());
    }

    /// Checks every mode against the oracle.
    #[track_caller]
    pub(crate) fn check_with(&self, modes: &[Mode], options: Options) {
        let (out, state) = naive_gated_delta_rule(self, options);
        for &mode in modes {
            let (actual_out, actual_state) = self.run(mode, options);
            assert_near(&format!("{mode:?} out"), &actual_out, &out);
            assert_near(&format!("{mode:?} state"), &actual_state, &state);
        }
    }
}

/// Every way to go through the tokens.
pub(crate) const MODES: [Mode; 6] = [
    Mode::Sequential,
    Mode::Chunked { chunk_len: 1 },
    Mode::Chunked { chunk_len: 16 },
    Mode::Chunked { chunk_len: 64 },
    Mode::Chunked { chunk_len: 100 },
    Mode::Chunked { chunk_len: usize::MAX },
];

/// |actual − expected| relative to the largest magnitude expected.
pub(crate) fn error<D: ndarray::Dimension>(
    actual: &ndarray::Array<f32, D>,
    expected: &ndarray::Array<f64, D>,
) -> f64 {
    assert_eq!(actual.shape(), expected.shape());
    let largest = expected.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let worst = actual.iter().zip(expected).fold(0.0_f64, |worst, (actual, expected)| {
        let error = (f64::from(*actual) - expected).abs();
        if error.is_nan() { f64::INFINITY } else { worst.max(error) }
    });
    if worst == 0.0 { 0.0 } else { worst / largest }
}

#[track_caller]
pub(crate) fn assert_near<D: ndarray::Dimension>(
    what: &str,
    actual: &ndarray::Array<f32, D>,
    expected: &ndarray::Array<f64, D>,
) {
    let error = error(actual, expected);
    assert!(error <= TOLERANCE, "{what}: {error:.2e} from float64");
}

/// The rule as it is written, in float64.
pub(crate) fn naive_gated_delta_rule(inputs: &Inputs, options: Options) -> (Array3<f64>, Array3<f64>) {
    let Inputs { q, k, v, g, beta, s0 } = inputs;
    let (tokens, key_heads, key_width) = q.dim();
    let (_, value_heads, value_width) = v.dim();
    let scale = options.scale.map_or(1.0 / (key_width as f64).sqrt(), f64::from);
    let mut state = s0.mapv(f64::from);
    let mut out = Array3::zeros((tokens, value_heads, value_width));
    for t in 0..tokens {
        for h in 0..value_heads {
            let key_head = h / (value_heads / key_heads);
            let row = |x: &Array3<f32>| normalized(x, t, key_head, options.l2_normalize);
            let (q, k) = (row(q), row(k));
            let decay = f64::from(g[[t, h]]).exp();
            for c in 0..value_width {
                for i in 0..key_width {
                    state[[h, i, c]] *= decay;
                }
                let predicted: f64 = (0..key_width).map(|i| state[[h, i, c]] * k[i]).sum();
                let delta = f64::from(beta[[t, h]]) * (f64::from(v[[t, h, c]]) - predicted);
                for i in 0..key_width {
                    state[[h, i, c]] += k[i] * delta;
                    out[[t, h, c]] += state[[h, i, c]] * q[i] * scale;
                }
            }
        }
    }
    (out, state)
}

fn normalized(x: &Array3<f32>, token: usize, head: usize, eps: Option<f32>) -> Vec<f64> {
    let row: Vec<f64> = x.slice(s![token, head, ..]).iter().map(|x| f64::from(*x)).collect();
    let factor = eps.map_or(1.0, |eps| {
        assert_eq!(eps, L2_EPS);
        1.0 / (row.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt()
    });
    row.into_iter().map(|x| x * factor).collect()
}

/// The convolution as it is written, in float64, without a function behind it; also the inputs that it keeps.
pub(crate) fn naive_causal_conv(
    x: &Array2<f32>,
    weight: &Array2<f32>,
    state: &Array2<f32>,
) -> (Array2<f64>, Array2<f32>) {
    let all = ndarray::concatenate![ndarray::Axis(0), *state, *x];
    let (tokens, taps) = (x.dim().0, weight.dim().1);
    let out = Array2::from_shape_fn(x.dim(), |(t, c)| {
        (0..taps).map(|j| f64::from(weight[[c, j]]) * f64::from(all[[t + j, c]])).sum()
    });
    (out, all.slice(s![tokens.., ..]).to_owned())
}

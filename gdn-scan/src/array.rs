//! The scan over arrays, for people who want it alone.
//!
//! These functions run on one processor device, made when the first of them is called and kept as long as the process
//! (its threads sleep in between). Arrays of any layout are taken; they are copied in and out, and scratch is made anew
//! for each call. Whoever runs many layers uses [`crate::ScanBackend`], which does neither.

use std::sync::OnceLock;

use fermi_blas::{Activation, Backend, Cpu, Matrix, RowOps};
use ndarray::{
    Array, Array2, Array3, ArrayBase, ArrayView1, ArrayView2, ArrayView3, Axis, Data, DataMut, Dimension,
    Ix2, Ix3,
};

use crate::error::check;
use crate::{CausalConv, Gates, L2_EPS, Result, Scan, ScanBackend, ScanInputs, ScanShape};

/// The inputs of a scan.
///
/// # Shapes
/// q, k `[T, Hk, Dk]`, v `[T, Hv, Dv]`, g, beta `[T, Hv]`; float32, g as a natural logarithm
#[derive(Clone, Copy, Debug)]
pub struct ScanArgs<'a> {
    /// Queries.
    pub q: ArrayView3<'a, f32>,
    /// Keys.
    pub k: ArrayView3<'a, f32>,
    /// Values.
    pub v: ArrayView3<'a, f32>,
    /// Natural logarithms of the decays, at most 0.
    pub g: ArrayView2<'a, f32>,
    /// Writing strengths, 0 to 1.
    pub beta: ArrayView2<'a, f32>,
}

/// The inputs of one token.
///
/// # Shapes
/// q, k `[Hk, Dk]`, v `[Hv, Dv]`, g, beta `[Hv]`; float32, g as a natural logarithm
#[derive(Clone, Copy, Debug)]
pub struct StepArgs<'a> {
    /// Query.
    pub q: ArrayView2<'a, f32>,
    /// Key.
    pub k: ArrayView2<'a, f32>,
    /// Value.
    pub v: ArrayView2<'a, f32>,
    /// Natural logarithm of the decay, at most 0.
    pub g: ArrayView1<'a, f32>,
    /// Writing strength, 0 to 1.
    pub beta: ArrayView1<'a, f32>,
}

/// The inputs of the gates.
///
/// # Shapes
/// a, b `[T, Hv]`, a_log, dt_bias `[Hv]`; float32
#[derive(Clone, Copy, Debug)]
pub struct GateArgs<'a> {
    /// The projection that widens or narrows the time step.
    pub a: ArrayView2<'a, f32>,
    /// The projection that becomes the writing strength.
    pub b: ArrayView2<'a, f32>,
    /// Logarithms of the heads' decay rates.
    pub a_log: ArrayView1<'a, f32>,
    /// What is added to `a`.
    pub dt_bias: ArrayView1<'a, f32>,
}

/// How the tokens are gone through. The results agree within rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In chunks, each by matrix products: for prompts.
    Chunked {
        /// Tokens of a chunk.
        chunk_len: usize,
    },
    /// One after the other: for a few tokens.
    Sequential,
}

impl Default for Mode {
    fn default() -> Self {
        Self::Chunked { chunk_len: 64 }
    }
}

/// What is done to queries and keys first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What queries are multiplied by; 1/√Dk if not given.
    pub scale: Option<f32>,
    /// Queries and keys are divided by √(Σx² + eps), head by head, if an eps is given.
    pub l2_normalize: Option<f32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { scale: None, l2_normalize: Some(L2_EPS) }
    }
}

/// The gated delta rule with q and k normalised and q scaled by 1/√Dk, as the models use it; see
/// [`gated_delta_rule_with`].
///
/// # Shapes
/// as in [`ScanArgs`]; state `[Hv, Dk, Dv]`; the result `[T, Hv, Dv]`
///
/// # Errors
/// [`crate::Error::Shape`] naming the axis that does not fit, [`crate::Error::HeadGroups`],
/// [`crate::Error::EmptyChunk`]. The state is then as it was.
pub fn gated_delta_rule<S: DataMut<Elem = f32>>(
    args: ScanArgs<'_>,
    state: &mut ArrayBase<S, Ix3>,
    mode: Mode,
) -> Result<Array3<f32>> {
    gated_delta_rule_with(args, state, mode, Options::default())
}

/// The gated delta rule: for every token and value head, S ← exp(g) S, δ = β (v − Sᵀ k), S ← S + k δᵀ, o = Sᵀ q.
///
/// `state` is where the scan starts and afterwards holds where it ended. Value head j reads key head j / (Hv / Hk).
///
/// # Shapes
/// as in [`ScanArgs`]; state `[Hv, Dk, Dv]`; the result `[T, Hv, Dv]`
///
/// # Errors
/// [`crate::Error::Shape`] naming the axis that does not fit, [`crate::Error::HeadGroups`],
/// [`crate::Error::EmptyChunk`]. The state is then as it was.
pub fn gated_delta_rule_with<S: DataMut<Elem = f32>>(
    args: ScanArgs<'_>,
    state: &mut ArrayBase<S, Ix3>,
    mode: Mode,
    options: Options,
) -> Result<Array3<f32>> {
    let ScanArgs { q, k, v, g, beta } = args;
    let operation = "gated_delta_rule";
    let (tokens, key_heads, key_width) = q.dim();
    let (v_tokens, value_heads, value_width) = v.dim();
    let expected = [
        ("k tokens", tokens, k.dim().0),
        ("k heads", key_heads, k.dim().1),
        ("k width", key_width, k.dim().2),
        ("v tokens", tokens, v_tokens),
        ("g tokens", tokens, g.dim().0),
        ("g heads", value_heads, g.dim().1),
        ("beta tokens", tokens, beta.dim().0),
        ("beta heads", value_heads, beta.dim().1),
        ("state heads", value_heads, state.dim().0),
        ("state key width", key_width, state.dim().1),
        ("state value width", value_width, state.dim().2),
    ];
    for (axis, expected, actual) in expected {
        check(operation, axis, expected, actual)?;
    }
    let shape = ScanShape::new(key_heads, value_heads, key_width, value_width)?;
    let device = device()?;
    let keys = key_heads * key_width;
    let [q, k] = [upload(&device, tokens, keys, &q)?, upload(&device, tokens, keys, &k)?];
    let v = upload(&device, tokens, value_heads * value_width, &v)?;
    let [g, beta] = [upload(&device, tokens, value_heads, &g)?, upload(&device, tokens, value_heads, &beta)?];
    let mut s = upload(&device, value_heads * key_width, value_width, state)?;
    let mut out = Matrix::zeros(&device, tokens, value_heads * value_width)?;
    let inputs = ScanInputs { q: q.view(), k: k.view(), v: v.view(), g: g.view(), beta: beta.view() };
    let mut scan = Scan::new(shape, inputs, s.view_mut(), out.view_mut())?.l2_normalize(options.l2_normalize);
    if let Some(scale) = options.scale {
        scan = scan.scale(scale);
    }
    match mode {
        Mode::Sequential => device.recurrent_forward(scan)?,
        Mode::Chunked { chunk_len } => {
            let needed = device.chunk_scratch_len(shape, tokens, chunk_len);
            let mut scratch = Matrix::zeros(&device, 1, needed)?;
            device.chunk_forward(scan, chunk_len, scratch.view_mut())?;
        }
    }
    download(&device, &s, state)?;
    let mut result = Array::zeros((tokens, value_heads, value_width));
    download(&device, &out, &mut result)?;
    Ok(result)
}

/// The gated delta rule for one token, with the options of [`gated_delta_rule`].
///
/// # Shapes
/// as in [`StepArgs`]; state `[Hv, Dk, Dv]`; the result `[Hv, Dv]`
///
/// # Errors
/// As [`gated_delta_rule`].
pub fn step<S: DataMut<Elem = f32>>(
    args: StepArgs<'_>,
    state: &mut ArrayBase<S, Ix3>,
) -> Result<Array2<f32>> {
    let StepArgs { q, k, v, g, beta } = args;
    let args = ScanArgs {
        q: q.insert_axis(Axis(0)),
        k: k.insert_axis(Axis(0)),
        v: v.insert_axis(Axis(0)),
        g: g.insert_axis(Axis(0)),
        beta: beta.insert_axis(Axis(0)),
    };
    Ok(gated_delta_rule(args, state, Mode::Sequential)?.index_axis_move(Axis(0), 0))
}

/// A depthwise causal convolution: y_t = f(Σ_j weight_j · x_(t − K + 1 + j)), inputs before the first one from `state`.
///
/// `state` afterwards holds the last K − 1 inputs.
///
/// # Shapes
/// x `[T, C]`, weight `[C, K]` (oldest input's tap first), state `[K − 1, C]` (oldest first), the result `[T, C]`
///
/// # Errors
/// [`crate::Error::Shape`] naming the axis that does not fit, [`crate::Error::NoTaps`].
pub fn causal_conv1d<S: DataMut<Elem = f32>>(
    x: ArrayView2<'_, f32>,
    weight: ArrayView2<'_, f32>,
    state: &mut ArrayBase<S, Ix2>,
    activation: Option<Activation>,
) -> Result<Array2<f32>> {
    let operation = "causal_conv1d";
    let ((tokens, channels), taps) = (x.dim(), weight.dim().1);
    if taps == 0 {
        return Err(crate::Error::NoTaps { operation });
    }
    check(operation, "weight channels", channels, weight.dim().0)?;
    check(operation, "state inputs", taps - 1, state.dim().0)?;
    check(operation, "state channels", channels, state.dim().1)?;
    let device = device()?;
    let x = upload(&device, tokens, channels, &x)?;
    let weight = upload(&device, taps, channels, &weight.t())?;
    let mut past = upload(&device, taps - 1, channels, state)?;
    let mut out = Matrix::zeros(&device, tokens, channels)?;
    let conv = CausalConv::new(x.view(), weight.view(), past.view_mut(), out.view_mut())?;
    device.causal_conv(conv.activation(activation))?;
    download(&device, &past, state)?;
    let mut result = Array::zeros((tokens, channels));
    download(&device, &out, &mut result)?;
    Ok(result)
}

/// Decays and writing strengths: g = −exp(A_log) · softplus(a + dt_bias), β = sigmoid(b); returned in this order.
///
/// # Shapes
/// as in [`GateArgs`]; each result `[T, Hv]`, g as a natural logarithm
///
/// # Errors
/// [`crate::Error::Shape`] naming the axis that does not fit.
pub fn gates(args: GateArgs<'_>) -> Result<(Array2<f32>, Array2<f32>)> {
    let GateArgs { a, b, a_log, dt_bias } = args;
    let (tokens, heads) = a.dim();
    for (axis, expected, actual) in [
        ("b tokens", tokens, b.dim().0),
        ("b heads", heads, b.dim().1),
        ("a_log heads", heads, a_log.dim()),
        ("dt_bias heads", heads, dt_bias.dim()),
    ] {
        check("gates", axis, expected, actual)?;
    }
    let device = device()?;
    let [a, b] = [upload(&device, tokens, heads, &a)?, upload(&device, tokens, heads, &b)?];
    let [a_log, dt_bias] = [upload(&device, 1, heads, &a_log)?, upload(&device, 1, heads, &dt_bias)?];
    let mut g = Matrix::zeros(&device, tokens, heads)?;
    let mut beta = Matrix::zeros(&device, tokens, heads)?;
    device.gates(Gates {
        a: a.view(),
        b: b.view(),
        a_log: a_log.view(),
        dt_bias: dt_bias.view(),
        g: g.view_mut(),
        beta: beta.view_mut(),
    })?;
    let mut results = (Array::zeros((tokens, heads)), Array::zeros((tokens, heads)));
    download(&device, &g, &mut results.0)?;
    download(&device, &beta, &mut results.1)?;
    Ok(results)
}

/// The norm behind the scan: weight · x / √(mean(x²) + eps) · silu(z), row by row.
///
/// # Shapes
/// x, z and the result `[N, D]`, weight `[D]`
///
/// # Errors
/// [`crate::Error::Shape`] naming the axis that does not fit.
pub fn gated_rms_norm(
    x: ArrayView2<'_, f32>,
    z: ArrayView2<'_, f32>,
    weight: ArrayView1<'_, f32>,
    eps: f32,
) -> Result<Array2<f32>> {
    let (rows, width) = x.dim();
    check("gated_rms_norm", "z rows", rows, z.dim().0)?;
    check("gated_rms_norm", "z width", width, z.dim().1)?;
    check("gated_rms_norm", "weight width", width, weight.dim())?;
    let device = device()?;
    let [mut x, z] = [upload(&device, rows, width, &x)?, upload(&device, rows, width, &z)?];
    let weight = upload(&device, 1, width, &weight)?;
    device.gated_rms_norm_in_place(x.view_mut(), z.view(), weight.view(), eps)?;
    let mut result = Array::zeros((rows, width));
    download(&device, &x, &mut result)?;
    Ok(result)
}

/// The device of this module's functions.
fn device() -> Result<Cpu> {
    static DEVICE: OnceLock<Cpu> = OnceLock::new();
    if let Some(device) = DEVICE.get() {
        return Ok(device.clone());
    }
    let device = Cpu::new()?;
    Ok(DEVICE.get_or_init(|| device).clone())
}

/// An array's values in logical order as a matrix of the device.
fn upload<S: Data<Elem = f32>, D: Dimension>(
    device: &Cpu,
    rows: usize,
    columns: usize,
    array: &ArrayBase<S, D>,
) -> Result<Matrix<Cpu>> {
    let matrix = match array.as_slice() {
        Some(values) => Matrix::from_slice(device, rows, columns, values)?,
        None => Matrix::from_slice(device, rows, columns, &array.iter().copied().collect::<Vec<_>>())?,
    };
    Ok(matrix)
}

/// A matrix's values into an array of as many.
fn download<S: DataMut<Elem = f32>, D: Dimension>(
    device: &Cpu,
    matrix: &Matrix<Cpu>,
    array: &mut ArrayBase<S, D>,
) -> Result<()> {
    match array.as_slice_mut() {
        Some(values) => device.read(matrix.view(), values)?,
        None => {
            for (to, from) in array.iter_mut().zip(matrix.to_vec(device)?) {
                *to = from;
            }
        }
    }
    Ok(())
}

//! The gated delta net.

#[cfg(test)]
mod tests;

use fermi_blas::{Matrix, View, ViewMut, Weight};
use gdn_scan::{CausalConv, Gates, Scan, ScanBackend, ScanInputs, ScanShape};

use crate::layer::Pass;
use crate::sequence::DeltaState;
use crate::tensors::{Loader, Tensor, float32, projection};
use crate::{Config, Options, Result};

/// Tokens from which on the chunked form of the rule is faster than one token after the other.
const SHORTEST_CHUNKED: usize = 32;

/// y = out_proj(norm(rule(q, k, v, g, β)) · silu(z)) with q, k, v out of one projection and its causal convolution.
#[derive(Debug)]
pub(crate) struct DeltaNet<B: ScanBackend> {
    in_proj_qkv: Weight<B>,
    in_proj_z: Weight<B>,
    in_proj_b: Weight<B>,
    in_proj_a: Weight<B>,
    /// One row a tap, `[K, C]`
    conv1d: Matrix<B>,
    dt_bias: Matrix<B>,
    a_log: Matrix<B>,
    norm: Matrix<B>,
    out_proj: Weight<B>,
    shape: ScanShape,
    eps: f32,
}

impl<B: ScanBackend> DeltaNet<B> {
    pub(crate) fn load(loader: &Loader<'_, B>, config: &Config) -> Result<Self> {
        let [in_proj_qkv, in_proj_z, in_proj_b, in_proj_a, conv1d, dt_bias, a_log, norm, out_proj] =
            tensors(config);
        Ok(Self {
            in_proj_qkv: loader.weight(&in_proj_qkv)?,
            in_proj_z: loader.weight(&in_proj_z)?,
            in_proj_b: loader.weight(&in_proj_b)?,
            in_proj_a: loader.weight(&in_proj_a)?,
            conv1d: loader.transposed(&conv1d)?,
            dt_bias: loader.matrix(&dt_bias)?,
            a_log: loader.matrix(&a_log)?,
            norm: loader.matrix(&norm)?,
            out_proj: loader.weight(&out_proj)?,
            shape: shape(config)?,
            eps: config.rms_norm_eps,
        })
    }

    /// # Shapes
    /// x `[T, hidden]`; y `[W, hidden]` for the last W tokens; the state is that after the tokens before, and then after these
    pub(crate) fn forward(
        &self,
        pass: &Pass<'_, B>,
        x: View<'_, B>,
        state: &mut DeltaState<B>,
        activations: &mut DeltaActivations<B>,
        mut weights: ViewMut<'_, B>,
        y: ViewMut<'_, B>,
    ) -> Result<()> {
        let (device, tokens, wanted) = (pass.device, x.rows(), y.rows());
        let DeltaActivations { mixed_qkv, qkv, z, b, a, g, beta, output, scan } = activations;
        let mut mixed_qkv = mixed_qkv.row_range_mut(0..tokens)?; // [T, C]
        let mut qkv = qkv.row_range_mut(0..tokens)?; // [T, C]
        let mut z = z.row_range_mut(0..wanted)?; // [W, Hv * Dv]
        let mut b = b.row_range_mut(0..tokens)?; // [T, Hv]
        let mut a = a.row_range_mut(0..tokens)?; // [T, Hv]
        let mut g = g.row_range_mut(0..tokens)?; // [T, Hv]
        let mut beta = beta.row_range_mut(0..tokens)?; // [T, Hv]
        let mut output = output.row_range_mut(0..tokens)?; // [T, Hv * Dv]

        self.in_proj_qkv.multiply(device, x, mixed_qkv.reborrow(), weights.reborrow())?;
        self.in_proj_b.multiply(device, x, b.reborrow(), weights.reborrow())?;
        self.in_proj_a.multiply(device, x, a.reborrow(), weights.reborrow())?;

        let conv = state.conv.view_mut();
        let taps = self.conv1d.view();
        device.causal_conv(CausalConv::new(mixed_qkv.as_view(), taps, conv, qkv.reborrow())?)?;
        device.gates(Gates {
            a: a.as_view(),
            b: b.as_view(),
            a_log: self.a_log.view(),
            dt_bias: self.dt_bias.view(),
            g: g.reborrow(),
            beta: beta.reborrow(),
        })?;

        let (keys, qkv) = (self.shape.key_heads() * self.shape.key_width(), qkv.as_view());
        let inputs = ScanInputs {
            q: qkv.column_range(0..keys)?,
            k: qkv.column_range(keys..2 * keys)?,
            v: qkv.column_range(2 * keys..qkv.columns())?,
            g: g.as_view(),
            beta: beta.as_view(),
        };
        let rule = Scan::new(self.shape, inputs, state.recurrent.view_mut(), output.reborrow())?;
        if tokens < SHORTEST_CHUNKED {
            device.recurrent_forward(rule)?;
        } else {
            device.chunk_forward(rule, pass.scan_chunk, scan.view_mut())?;
        }

        if wanted == 0 {
            return Ok(());
        }
        let last = tokens - wanted..tokens;
        self.in_proj_z.multiply(device, x.row_range(last.clone())?, z.reborrow(), weights.reborrow())?;
        let mut output = output.row_range(last)?; // [W, Hv * Dv]
        {
            let _span = device.span("norm");
            let (rows, width) = (wanted * self.shape.value_heads(), self.shape.value_width());
            let z = z.as_view().reshape(rows, width)?; // [W * Hv, Dv]
            let output = output.reborrow().reshape(rows, width)?; // [W * Hv, Dv]
            device.gated_rms_norm_in_place(output, z, self.norm.view(), self.eps)?;
        }
        Ok(self.out_proj.multiply(device, output.as_view(), y, weights)?) // [W, hidden]
    }
}

/// Heads and widths of the rule.
pub(crate) fn shape(config: &Config) -> Result<ScanShape> {
    Ok(ScanShape::new(
        config.linear_num_key_heads,
        config.linear_num_value_heads,
        config.linear_key_head_dim,
        config.linear_value_head_dim,
    )?)
}

pub(crate) fn tensors(config: &Config) -> [Tensor; 9] {
    let (hidden, value_dim, conv_dim) = (config.hidden_size, config.linear_value_dim(), config.conv_dim());
    let heads = config.linear_num_value_heads;
    // The gates' own projections decide decays over thousands of tokens, and they are small.
    let gate = |name| float32(name, [heads, hidden]);
    [
        projection("linear_attn.in_proj_qkv.weight", conv_dim, hidden),
        projection("linear_attn.in_proj_z.weight", value_dim, hidden),
        gate("linear_attn.in_proj_b.weight"),
        gate("linear_attn.in_proj_a.weight"),
        float32("linear_attn.conv1d.weight", [conv_dim, 1, config.linear_conv_kernel_dim]),
        float32("linear_attn.dt_bias", [heads]),
        float32("linear_attn.A_log", [heads]),
        float32("linear_attn.norm.weight", [config.linear_value_head_dim]),
        projection("linear_attn.out_proj.weight", hidden, value_dim),
    ]
}

/// Scratch of a delta-net layer.
#[derive(Debug)]
pub(crate) struct DeltaActivations<B: ScanBackend> {
    /// Inputs of the convolution, `[T, C]` with C = 2 Hk Dk + Hv Dv
    mixed_qkv: Matrix<B>,
    /// Queries, keys and values, `[T, C]`
    qkv: Matrix<B>,
    /// Inputs of the output's gate, `[T, Hv * Dv]`
    z: Matrix<B>,
    /// `[T, Hv]`
    b: Matrix<B>,
    /// `[T, Hv]`
    a: Matrix<B>,
    /// Logarithms of the decays, `[T, Hv]`
    g: Matrix<B>,
    /// Writing strengths, `[T, Hv]`
    beta: Matrix<B>,
    /// `[T, Hv * Dv]`
    output: Matrix<B>,
    /// Scratch of the chunked rule, `[1, n]`
    scan: Matrix<B>,
}

impl<B: ScanBackend> DeltaActivations<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let [mixed_qkv, qkv, z, b, a, g, beta, output, scan] =
            delta_sizes(device, config, options)?.map(|(rows, columns)| Matrix::zeros(device, rows, columns));
        Ok(Self {
            mixed_qkv: mixed_qkv?,
            qkv: qkv?,
            z: z?,
            b: b?,
            a: a?,
            g: g?,
            beta: beta?,
            output: output?,
            scan: scan?,
        })
    }
}

/// Rows and columns of the fields of [`DeltaActivations`]: nothing for a model without delta-net layers.
pub(crate) fn delta_sizes<B: ScanBackend>(
    device: &B,
    config: &Config,
    options: &Options,
) -> Result<[(usize, usize); 9]> {
    if config.count(crate::LayerType::LinearAttention) == 0 {
        return Ok([(0, 0); 9]);
    }
    let (tokens, heads) = (options.prefill_chunk, config.linear_num_value_heads);
    let (conv, values) = ((tokens, config.conv_dim()), (tokens, config.linear_value_dim()));
    let gate = (tokens, heads);
    let scan = device.chunk_scratch_len(shape(config)?, tokens, options.scan_chunk);
    Ok([conv, conv, values, gate, gate, gate, gate, values, (1, scan)])
}

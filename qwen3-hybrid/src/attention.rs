//! Gated softmax attention.

#[cfg(test)]
mod tests;

use fermi_blas::{Activation, BatchViewMut, GemmBatched, Matrix, View, ViewMut, Weight};
use gdn_scan::ScanBackend;

use crate::layer::Pass;
use crate::sequence::KeyValues;
use crate::tensors::{Loader, Tensor, float32, projection};
use crate::{Config, Options, Result};

/// Query rows that are not halved for the sake of hidden scores: products of fewer rows are slower than they are smaller.
const FEW_ROWS: usize = 256;

/// y = o_proj(softmax(q kᵀ / √D) v · sigmoid(gate)) with normed and rotated q and k.
///
/// `q_proj` gives, head after head, D of query and D of gate.
#[derive(Debug)]
pub(crate) struct Attention<B: ScanBackend> {
    q_proj: Weight<B>,
    k_proj: Weight<B>,
    v_proj: Weight<B>,
    o_proj: Weight<B>,
    q_norm: Matrix<B>,
    k_norm: Matrix<B>,
    heads: usize,
    key_value_heads: usize,
    head_dim: usize,
    eps: f32,
}

impl<B: ScanBackend> Attention<B> {
    pub(crate) fn load(loader: &Loader<'_, B>, config: &Config) -> Result<Self> {
        let [q_proj, k_proj, v_proj, o_proj, q_norm, k_norm] = tensors(config);
        Ok(Self {
            q_proj: loader.weight(&q_proj)?,
            k_proj: loader.weight(&k_proj)?,
            v_proj: loader.weight(&v_proj)?,
            o_proj: loader.weight(&o_proj)?,
            q_norm: loader.matrix(&q_norm)?,
            k_norm: loader.matrix(&k_norm)?,
            heads: config.num_attention_heads,
            key_value_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
            eps: config.rms_norm_eps,
        })
    }

    /// # Shapes
    /// x `[T, hidden]`; y `[W, hidden]` for the last W tokens; the cache holds the keys and values of the tokens before, and then
    /// of these
    pub(crate) fn forward(
        &self,
        pass: &Pass<'_, B>,
        x: View<'_, B>,
        cache: &mut KeyValues<B>,
        activations: &mut AttentionActivations<B>,
        mut weights: ViewMut<'_, B>,
        y: ViewMut<'_, B>,
    ) -> Result<()> {
        let (device, tokens, wanted) = (pass.device, x.rows(), y.rows());
        let AttentionActivations { q_gate, scores, output } = activations;
        // Keys and values come to be where they will stay.
        let (mut k, v) = cache.new_rows(pass.history, tokens)?; // [T, Hkv * D] each
        self.k_proj.multiply(device, x, k.reborrow(), weights.reborrow())?;
        self.v_proj.multiply(device, x, v, weights.reborrow())?;
        self.place(pass, k.heads(self.key_value_heads)?, &self.k_norm)?; // [Hkv, T, D]
        if wanted == 0 {
            return Ok(());
        }
        let pass = &pass.last(tokens, wanted)?;
        let mut q_gate = q_gate.row_range_mut(0..wanted)?; // [W, H * 2D]
        let mut output = output.row_range_mut(0..wanted)?; // [W, H * D]
        self.q_proj.multiply(
            device,
            x.row_range(tokens - wanted..tokens)?,
            q_gate.reborrow(),
            weights.reborrow(),
        )?;
        let queries = q_gate.reborrow().heads(self.heads)?.column_range(0..self.head_dim)?; // [H, W, D]
        self.place(pass, queries, &self.q_norm)?;
        if wanted == 1 {
            self.attend_one(pass, q_gate.as_view(), cache, scores, output.reborrow())?;
        } else {
            self.attend(pass, q_gate.as_view(), cache, scores, output.reborrow())?;
        }
        {
            let _span = device.span("attention gate");
            let rows = wanted * self.heads;
            let gate = q_gate.as_view().reshape(rows, 2 * self.head_dim)?; // [W * H, 2D]
            let gate = gate.column_range(self.head_dim..2 * self.head_dim)?; // [W * H, D]
            let output = output.reborrow().reshape(rows, self.head_dim)?; // [W * H, D]
            device.gate_in_place(Activation::Sigmoid, output, gate)?;
        }
        Ok(self.o_proj.multiply(device, output.as_view(), y, weights)?) // [W, hidden]
    }

    /// Norms the heads of queries or keys and turns them to their positions.
    fn place(&self, pass: &Pass<'_, B>, mut heads: BatchViewMut<'_, B>, norm: &Matrix<B>) -> Result<()> {
        let _span = pass.device.span("attention positions");
        pass.device.rms_norm_in_place(heads.reborrow(), norm.view(), self.eps)?;
        Ok(pass.device.rotary_in_place(heads, pass.positions, pass.rotary)?)
    }

    /// Scores of a block of query rows, softmax, values; block after block, so that their scores fit the scratch.
    ///
    /// The scores of head h lie in columns h * S .. (h + 1) * S of one matrix `[R, H * S]` (paper, section 3.2: a leading
    /// dimension of heads x keys), which as `[R * H, S]` is one softmax. The query heads of a group share one block of
    /// keys and values: a batch of fewer matrices.
    fn attend(
        &self,
        pass: &Pass<'_, B>,
        q_gate: View<'_, B>,
        cache: &KeyValues<B>,
        scores: &mut Matrix<B>,
        mut output: ViewMut<'_, B>,
    ) -> Result<()> {
        let (device, heads, dim) = (pass.device, self.heads, self.head_dim);
        let tokens = q_gate.rows();
        let mut start = 0;
        while start < tokens {
            let rows = self.rows(tokens - start, pass.history + start, scores.columns());
            let keys = pass.history + start + rows;
            let block = scores.view_mut().column_range(0..rows * heads * keys)?;
            let mut block = block.reshape(rows, heads * keys)?; // [R, H * S]
            let q = q_gate.row_range(start..start + rows)?.heads(heads)?.column_range(0..dim)?; // [H, R, D]
            let k = cache.keys.row_range(0..keys)?.heads(self.key_value_heads)?; // [Hkv, S, D]
            {
                let _span = device.span("attention scores");
                device.gemm_batched(GemmBatched::new(q, k.t(), block.reborrow().heads(heads)?)?)?;
            }
            {
                let _span = device.span("attention softmax");
                device.causal_softmax_in_place(
                    block.reborrow().reshape(rows * heads, keys)?,
                    heads,
                    pass.positions.column_range(start..start + rows)?,
                    self.scale(),
                )?;
            }
            let _span = device.span("attention values");
            let probabilities = block.as_view().heads(heads)?; // [H, R, S]
            let v = cache.values.row_range(0..keys)?.heads(self.key_value_heads)?; // [Hkv, S, D]
            let output = output.reborrow().row_range(start..start + rows)?.heads(heads)?; // [H, R, D]
            device.gemm_batched(GemmBatched::new(probabilities, v, output)?)?;
            start += rows;
        }
        Ok(())
    }

    /// The same for one token: the query heads of a group become the rows of one product, so that every key and value is
    /// read once.
    fn attend_one(
        &self,
        pass: &Pass<'_, B>,
        q_gate: View<'_, B>,
        cache: &KeyValues<B>,
        scores: &mut Matrix<B>,
        output: ViewMut<'_, B>,
    ) -> Result<()> {
        let (device, heads, dim, groups) = (pass.device, self.heads, self.head_dim, self.key_value_heads);
        let keys = pass.history + 1;
        let q = q_gate.reshape(heads, 2 * dim)?.column_range(0..dim)?.blocks(groups)?; // [Hkv, G, D]
        let k = cache.keys.row_range(0..keys)?.heads(groups)?; // [Hkv, S, D]
        let v = cache.values.row_range(0..keys)?.heads(groups)?; // [Hkv, S, D]
        let mut scores = scores.view_mut().column_range(0..heads * keys)?.reshape(heads, keys)?; // [H, S]
        {
            let _span = device.span("attention scores");
            device.gemm_batched(GemmBatched::new(q, k.t(), scores.reborrow().blocks(groups)?)?)?;
        }
        {
            let _span = device.span("attention softmax");
            device.causal_softmax_in_place(scores.reborrow(), heads, pass.positions, self.scale())?;
        }
        let _span = device.span("attention values");
        let output = output.reshape(heads, dim)?.blocks(groups)?; // [Hkv, G, D]
        Ok(device.gemm_batched(GemmBatched::new(scores.as_view().blocks(groups)?, v, output)?)?)
    }

    /// How many query rows' scores to compute at once: all that are left if they fit the scratch and the history is so long
    /// that hidden scores among the rows themselves are few; else half of them, and so on. One row always fits.
    fn rows(&self, left: usize, history: usize, scratch: usize) -> usize {
        let mut rows = left;
        while rows > 1
            && (rows * self.heads * (history + rows) > scratch || (rows > FEW_ROWS && 4 * rows > history))
        {
            rows = rows.div_ceil(2);
        }
        rows
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

pub(crate) fn tensors(config: &Config) -> [Tensor; 6] {
    let (hidden, query, key_value) = (config.hidden_size, config.query_dim(), config.key_value_dim());
    [
        projection("self_attn.q_proj.weight", 2 * query, hidden),
        projection("self_attn.k_proj.weight", key_value, hidden),
        projection("self_attn.v_proj.weight", key_value, hidden),
        projection("self_attn.o_proj.weight", hidden, query),
        float32("self_attn.q_norm.weight", [config.head_dim]),
        float32("self_attn.k_norm.weight", [config.head_dim]),
    ]
}

/// Scratch of a softmax layer.
#[derive(Debug)]
pub(crate) struct AttentionActivations<B: ScanBackend> {
    /// Queries and gates, `[T, H * 2D]`
    q_gate: Matrix<B>,
    /// Scores of a block of rows against all keys, `[1, R * H * S]`
    scores: Matrix<B>,
    /// `[T, H * D]`
    output: Matrix<B>,
}

impl<B: ScanBackend> AttentionActivations<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let [q_gate, scores, output] =
            attention_sizes(config, options).map(|(rows, columns)| Matrix::zeros(device, rows, columns));
        Ok(Self { q_gate: q_gate?, scores: scores?, output: output? })
    }
}

/// Rows and columns of the fields of [`AttentionActivations`]: nothing for a model without softmax layers.
pub(crate) fn attention_sizes(config: &Config, options: &Options) -> [(usize, usize); 3] {
    if config.count(crate::LayerType::FullAttention) == 0 {
        return [(0, 0); 3];
    }
    let tokens = options.prefill_chunk;
    let scores = options.attention_rows * config.num_attention_heads * options.context_length;
    [(tokens, 2 * config.query_dim()), (1, scores), (tokens, config.query_dim())]
}

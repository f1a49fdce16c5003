//! Self-attention as two products (paper, section 5).

use fermi_blas::{Blas, Checkpoint, GemmBatched, Matrix, RowOps, View, ViewMut};

use crate::activations::part;
use crate::layers::Linear;
use crate::{Config, Result};

/// The weights of an attention block; queries, keys and values are one product.
#[derive(Debug)]
pub(crate) struct SelfAttention<B: Blas> {
    /// `q_proj`, `k_proj` and `v_proj`, side by side in this order.
    pub(crate) qkv_proj: Linear<B>,
    pub(crate) out_proj: Linear<B>,
    pub(crate) num_attention_heads: usize,
    /// 1 / √head_dim
    pub(crate) scaling: f32,
}

impl<B: Blas + RowOps> SelfAttention<B> {
    pub(crate) fn load(device: &B, checkpoint: &Checkpoint, name: &str, config: &Config) -> Result<Self> {
        let width = config.vision_config.hidden_size;
        let qkv = ["q_proj", "k_proj", "v_proj"].map(|projection| format!("{name}.{projection}"));
        Ok(Self {
            qkv_proj: Linear::load_stacked(device, checkpoint, &qkv, width, width)?,
            out_proj: Linear::load(device, checkpoint, &format!("{name}.out_proj"), width, width)?,
            num_attention_heads: config.vision_config.num_attention_heads,
            scaling: (config.vision_config.head_dim() as f64).powf(-0.5) as f32,
        })
    }

    /// Every head's softmax(q · kᵀ · scaling) · v over one slice, a few query rows at a time.
    ///
    /// The scores of head h are written into every `heads`-th part of a row, so that one softmax runs over all of them and
    /// no head needs a buffer of its own.
    ///
    /// # Shapes
    /// qkv `[T, 3 D]`, scores: scratch of at least `heads * T` values, context `[T, D]`
    pub(crate) fn attend(
        &self,
        device: &B,
        qkv: View<'_, B>,
        scores: &mut Matrix<B>,
        mut context: ViewMut<'_, B>,
    ) -> Result<()> {
        let (heads, width, keys_len) = (self.num_attention_heads, context.columns(), qkv.rows());
        let queries = qkv.column_range(0..width)?;
        let keys = qkv.column_range(width..2 * width)?.heads(heads)?; // [heads, T, D / heads]
        let values = qkv.column_range(2 * width..3 * width)?.heads(heads)?; // [heads, T, D / heads]
        // as few blocks as the scratch allows, all of about the same size
        let blocks = keys_len.div_ceil(scores.rows() / heads);
        let block = keys_len.div_ceil(blocks.max(1));
        let mut start = 0;
        while start < keys_len {
            let rows = start..(start + block).min(keys_len);
            let mut scores = part(scores, rows.len(), heads * keys_len)?; // [rows, heads * T]
            let block_queries = queries.row_range(rows.clone())?.heads(heads)?; // [heads, rows, D / heads]
            {
                let _span = device.span("attention scores");
                let scores = scores.reborrow().heads(heads)?;
                device.gemm_batched(GemmBatched::new(block_queries, keys.t(), scores)?)?;
            }
            {
                let _span = device.span("attention softmax");
                let scores = scores.reborrow().reshape(rows.len() * heads, keys_len)?;
                device.softmax_in_place(scores, self.scaling)?;
            }
            let _span = device.span("attention values");
            let context = context.reborrow().row_range(rows.clone())?.heads(heads)?;
            device.gemm_batched(GemmBatched::new(scores.as_view().heads(heads)?, values, context)?)?;
            start = rows.end;
        }
        Ok(())
    }
}

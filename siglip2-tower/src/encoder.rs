//! The encoder's layers.

use fermi_blas::{Activation, Blas, Checkpoint, RowOps};

use crate::activations::Activations;
use crate::attention::SelfAttention;
use crate::layers::{LayerNorm, Linear};
use crate::slices::Pass;
use crate::{Config, Result, VisionConfig};

/// A pre-norm block: x += out(attention(norm1(x))); x += fc2(act(fc1(norm2(x)))). Attention stays within a slice.
#[derive(Debug)]
pub(crate) struct EncoderLayer<B: Blas> {
    layer_norm1: LayerNorm<B>,
    self_attn: SelfAttention<B>,
    layer_norm2: LayerNorm<B>,
    fc1: Linear<B>,
    fc2: Linear<B>,
    hidden_act: Activation,
}

impl<B: Blas + RowOps> EncoderLayer<B> {
    pub(crate) fn load(device: &B, checkpoint: &Checkpoint, index: usize, config: &Config) -> Result<Self> {
        let VisionConfig { hidden_size, intermediate_size, layer_norm_eps, hidden_act, .. } =
            config.vision_config;
        let name = |part: &str| format!("model.vision_tower.encoder.layers.{index}.{part}");
        let norm = |part: &str| LayerNorm::load(device, checkpoint, &name(part), hidden_size, layer_norm_eps);
        Ok(Self {
            layer_norm1: norm("layer_norm1")?,
            self_attn: SelfAttention::load(device, checkpoint, &name("self_attn"), config)?,
            layer_norm2: norm("layer_norm2")?,
            fc1: Linear::load(device, checkpoint, &name("mlp.fc1"), intermediate_size, hidden_size)?,
            fc2: Linear::load(device, checkpoint, &name("mlp.fc2"), hidden_size, intermediate_size)?,
            hidden_act,
        })
    }

    /// Runs the layer over the first rows of `activations.hidden`.
    pub(crate) fn forward(&self, device: &B, pass: Pass<'_>, activations: &mut Activations<B>) -> Result<()> {
        let Activations { hidden, normed, qkv, scores, mlp, .. } = activations;
        let rows = 0..pass.rows();
        let mut hidden = hidden.row_range_mut(rows.clone())?; // [T, D]
        let mut normed = normed.row_range_mut(rows.clone())?; // [T, D]
        let mut qkv = qkv.row_range_mut(rows.clone())?; // [T, 3 D]
        let mut mlp = mlp.row_range_mut(rows)?; // [T, I]

        self.layer_norm1.forward(device, hidden.as_view(), normed.reborrow())?;
        {
            let _span = device.span("attention projections");
            self.self_attn.qkv_proj.forward(device, normed.as_view(), qkv.reborrow())?;
        }
        let mut context = normed; // [T, D]
        for (_, slice) in pass.ranges() {
            let qkv = qkv.as_view().row_range(slice.clone())?;
            self.self_attn.attend(device, qkv, scores, context.reborrow().row_range(slice)?)?;
        }
        {
            let _span = device.span("attention projections");
            self.self_attn.out_proj.forward_add(device, context.as_view(), hidden.reborrow())?;
        }
        let mut normed = context; // [T, D]
        self.layer_norm2.forward(device, hidden.as_view(), normed.reborrow())?;
        {
            let _span = device.span("mlp products");
            self.fc1.forward(device, normed.as_view(), mlp.reborrow())?;
        }
        {
            let _span = device.span("mlp activation");
            device.activate_in_place(self.hidden_act, mlp.reborrow())?;
        }
        let _span = device.span("mlp products");
        self.fc2.forward_add(device, mlp.as_view(), hidden)
    }
}

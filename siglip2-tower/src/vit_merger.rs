//! The window-attention merger: every 2 x 2 window of vectors becomes one.

use fermi_blas::{Activation, Blas, Checkpoint};

use crate::activations::{Activations, part};
use crate::attention::SelfAttention;
use crate::layers::{LayerNorm, Linear};
use crate::slices::Pass;
use crate::{Config, Grid, Result, VisionConfig, WINDOW_PATCHES, WindowBackend};

/// The window whose vectors become one.
pub(crate) const WINDOW: Grid = Grid { rows: 2, columns: 2 };

/// w = x in window order; w += out(window attention(norm1(w))); y = linear_2(gelu(linear_1(pre_norm(concat w)))) + mean w
#[derive(Debug)]
pub(crate) struct VitMerger<B: Blas> {
    layer_norm1: LayerNorm<B>,
    self_attn: SelfAttention<B>,
    pre_norm: LayerNorm<B>,
    linear_1: Linear<B>,
    linear_2: Linear<B>,
}

impl<B: WindowBackend> VitMerger<B> {
    pub(crate) fn load(device: &B, checkpoint: &Checkpoint, config: &Config) -> Result<Self> {
        let VisionConfig { hidden_size, intermediate_size, layer_norm_eps, .. } = config.vision_config;
        let (width, inner) = (WINDOW_PATCHES * hidden_size, WINDOW_PATCHES * intermediate_size);
        let name = |part: &str| format!("model.vision_tower.vit_merger.{part}");
        let norm =
            |part: &str, width| LayerNorm::load(device, checkpoint, &name(part), width, layer_norm_eps);
        Ok(Self {
            layer_norm1: norm("layer_norm1", hidden_size)?,
            self_attn: SelfAttention::load(device, checkpoint, &name("self_attn"), config)?,
            pre_norm: norm("pre_norm", width)?,
            linear_1: Linear::load(device, checkpoint, &name("linear_1"), inner, width)?,
            linear_2: Linear::load(device, checkpoint, &name("linear_2"), hidden_size, inner)?,
        })
    }

    /// Replaces the first T rows of `activations.hidden` by T / 4 merged ones.
    pub(crate) fn forward(&self, device: &B, pass: Pass<'_>, activations: &mut Activations<B>) -> Result<()> {
        let rows = pass.rows();
        let Activations { hidden, windows, normed, qkv, mlp, indices, .. } = activations;
        let mut windows = windows.row_range_mut(0..rows)?; // [T, D]
        indices.gather_windows(device, 0, hidden.row_range(0..rows)?, windows.reborrow())?;
        let mut normed = normed.row_range_mut(0..rows)?; // [T, D]
        let mut qkv = qkv.row_range_mut(0..rows)?; // [T, 3 D]
        self.layer_norm1.forward(device, windows.as_view(), normed.reborrow())?;
        let span = device.span("window merger attention");
        self.self_attn.qkv_proj.forward(device, normed.as_view(), qkv.reborrow())?;
        let SelfAttention { num_attention_heads, scaling, .. } = self.self_attn;
        device.window_attention(qkv.as_view(), num_attention_heads, scaling, normed.reborrow())?;
        self.self_attn.out_proj.forward_add(device, normed.as_view(), windows.reborrow())?;
        drop(span);

        let (merged, width) = (rows / WINDOW_PATCHES, WINDOW_PATCHES * windows.columns());
        let mut normed = normed.reshape(merged, width)?; // [T / 4, 4 D]
        self.pre_norm.forward(device, windows.as_view().reshape(merged, width)?, normed.reborrow())?;
        let _span = device.span("window merger mlp");
        let inner = WINDOW_PATCHES * mlp.columns();
        let mut mlp = part(mlp, merged, inner)?; // [T / 4, 4 I]
        let mut hidden = hidden.row_range_mut(0..merged)?; // [T / 4, D]
        self.linear_1.forward(device, normed.as_view(), mlp.reborrow())?;
        device.activate_in_place(Activation::GeluTanh, mlp.reborrow())?;
        self.linear_2.forward(device, mlp.as_view(), hidden.reborrow())?;
        Ok(device.add_window_mean_in_place(windows.as_view(), hidden)?)
    }
}

//! The projector: every 2 x 2 window of vectors becomes one of the language width.

use fermi_blas::{Activation, Blas, Checkpoint, ViewMut};

use crate::activations::{Activations, part};
use crate::layers::{LayerNorm, Linear};
use crate::{Config, Result, VisionConfig, WINDOW_PATCHES, WindowBackend};

/// The reference fixes it, whatever the config says of the encoder's norms.
const LAYER_NORM_EPS: f32 = 1e-6;

/// One round: y = linear_2(gelu(linear_1(pre_norm(concat of a window)))), with the GELU by the error function, no residual.
#[derive(Debug)]
pub(crate) struct MergerMlp<B: Blas> {
    pre_norm: LayerNorm<B>,
    linear_1: Linear<B>,
    linear_2: Linear<B>,
}

impl<B: WindowBackend> MergerMlp<B> {
    pub(crate) fn load(device: &B, checkpoint: &Checkpoint, round: usize, config: &Config) -> Result<Self> {
        let VisionConfig { hidden_size, .. } = config.vision_config;
        let (width, outputs) = (WINDOW_PATCHES * hidden_size, config.round_width(round));
        let name = |part: &str| format!("model.merger.mlp.{round}.{part}");
        Ok(Self {
            pre_norm: LayerNorm::load(device, checkpoint, &name("pre_norm"), width, LAYER_NORM_EPS)?,
            linear_1: Linear::load(device, checkpoint, &name("linear_1"), width, width)?,
            linear_2: Linear::load(device, checkpoint, &name("linear_2"), outputs, width)?,
        })
    }

    /// Merges the windows that lie in `activations.windows`.
    ///
    /// # Shapes
    /// `activations.windows` `[4 W, D]`, output `[W, D]`, or `[W, language width]` in the last round; `None` stands for
    /// the first rows of `activations.hidden`
    pub(crate) fn forward(
        &self,
        device: &B,
        merged: usize,
        output: Option<ViewMut<'_, B>>,
        activations: &mut Activations<B>,
    ) -> Result<()> {
        let Activations { hidden, windows, normed, qkv, .. } = activations;
        let width = WINDOW_PATCHES * windows.columns();
        let windows = part(windows, merged, width)?; // [W, 4 D]
        let mut normed = part(normed, merged, width)?; // [W, 4 D]
        let mut inner = part(qkv, merged, width)?; // [W, 4 D]
        self.pre_norm.forward(device, windows.as_view(), normed.reborrow())?;
        let _span = device.span("projector");
        self.linear_1.forward(device, normed.as_view(), inner.reborrow())?;
        device.activate_in_place(Activation::GeluErf, inner.reborrow())?;
        let output = match output {
            Some(output) => output,
            None => hidden.row_range_mut(0..merged)?,
        };
        self.linear_2.forward(device, inner.as_view(), output)
    }
}

//! One decoder layer.

use fermi_blas::{Matrix, RotaryTable, View};
use gdn_scan::ScanBackend;

use crate::activations::Activations;
use crate::attention::Attention;
use crate::delta_net::DeltaNet;
use crate::mlp::Mlp;
use crate::sequence::LayerState;
use crate::tensors::{Loader, Tensor, float32};
use crate::{Config, Error, LayerType, Result};

/// What all layers of a pass share.
#[derive(Debug)]
pub(crate) struct Pass<'a, B: ScanBackend> {
    pub(crate) device: &'a B,
    /// Tokens that the sequence held before.
    pub(crate) history: usize,
    /// Positions of the pass's tokens, `[1, T]`
    pub(crate) positions: View<'a, B, u32>,
    pub(crate) rotary: &'a RotaryTable<B>,
    pub(crate) scan_chunk: usize,
}

impl<'a, B: ScanBackend> Pass<'a, B> {
    /// The same for the last `wanted` of its tokens alone.
    pub(crate) fn last(&self, tokens: usize, wanted: usize) -> Result<Self> {
        let first = tokens - wanted;
        let positions = self.positions.column_range(first..tokens)?;
        Ok(Self { history: self.history + first, positions, ..*self })
    }
}

/// What mixes tokens.
#[derive(Debug)]
enum Mixer<B: ScanBackend> {
    DeltaNet(DeltaNet<B>),
    Attention(Attention<B>),
}

/// x += mixer(norm(x)); x += mlp(norm(x))
#[derive(Debug)]
pub(crate) struct Layer<B: ScanBackend> {
    input_layernorm: Matrix<B>,
    mixer: Mixer<B>,
    post_attention_layernorm: Matrix<B>,
    mlp: Mlp<B>,
    eps: f32,
}

impl<B: ScanBackend> Layer<B> {
    pub(crate) fn load(loader: &Loader<'_, B>, config: &Config, kind: LayerType) -> Result<Self> {
        let [input_layernorm, post_attention_layernorm] = norms(config);
        Ok(Self {
            input_layernorm: loader.matrix(&input_layernorm)?,
            mixer: match kind {
                LayerType::LinearAttention => Mixer::DeltaNet(DeltaNet::load(loader, config)?),
                LayerType::FullAttention => Mixer::Attention(Attention::load(loader, config)?),
            },
            post_attention_layernorm: loader.matrix(&post_attention_layernorm)?,
            mlp: Mlp::load(loader, config)?,
            eps: config.rms_norm_eps,
        })
    }

    /// Moves the last `wanted` of the first `tokens` rows of the residual through the layer; its state takes in all of them.
    ///
    /// # Shapes
    /// `activations.hidden` `[T, hidden]`, before and after; W rows are wanted
    pub(crate) fn forward(
        &self,
        pass: &Pass<'_, B>,
        tokens: usize,
        wanted: usize,
        state: &mut LayerState<B>,
        activations: &mut Activations<B>,
    ) -> Result<()> {
        let device = pass.device;
        let Activations { hidden, normed, mixed, weights, delta_net, attention, mlp, .. } = activations;
        let mut x = normed.row_range_mut(0..tokens)?; // [T, hidden]
        let mut y = mixed.row_range_mut(0..wanted)?; // [W, hidden]
        {
            let _span = device.span("norm");
            let hidden = hidden.row_range(0..tokens)?;
            device.rms_norm(hidden, self.input_layernorm.view(), self.eps, x.reborrow())?;
        }
        match (&self.mixer, state) {
            (Mixer::DeltaNet(mixer), LayerState::Delta(state)) => {
                mixer.forward(pass, x.as_view(), state, delta_net, weights.view_mut(), y.reborrow())?;
            }
            (Mixer::Attention(mixer), LayerState::KeyValues(cache)) => {
                mixer.forward(pass, x.as_view(), cache, attention, weights.view_mut(), y.reborrow())?;
            }
            (Mixer::DeltaNet(_), LayerState::KeyValues(_)) | (Mixer::Attention(_), LayerState::Delta(_)) => {
                return Err(Error::ForeignSequence);
            }
        }
        if wanted == 0 {
            return Ok(());
        }
        let mut hidden = hidden.row_range_mut(tokens - wanted..tokens)?; // [W, hidden]
        let mut x = x.row_range(0..wanted)?; // [W, hidden]
        {
            let _span = device.span("norm");
            device.add_in_place(hidden.reborrow(), y.as_view())?;
            let weight = self.post_attention_layernorm.view();
            device.rms_norm(hidden.as_view(), weight, self.eps, x.reborrow())?;
        }
        self.mlp.forward(device, x.as_view(), mlp, weights.view_mut(), y.reborrow())?;
        let _span = device.span("norm");
        Ok(device.add_in_place(hidden, y.as_view())?)
    }
}

fn norms(config: &Config) -> [Tensor; 2] {
    ["input_layernorm.weight", "post_attention_layernorm.weight"]
        .map(|name| float32(name, [config.hidden_size]))
}

/// Every tensor of a layer.
pub(crate) fn tensors(config: &Config, kind: LayerType) -> Vec<Tensor> {
    let mut tensors = norms(config).to_vec();
    match kind {
        LayerType::LinearAttention => tensors.extend(crate::delta_net::tensors(config)),
        LayerType::FullAttention => tensors.extend(crate::attention::tensors(config)),
    }
    tensors.extend(crate::mlp::tensors(config));
    tensors
}

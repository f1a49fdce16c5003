//! The gated MLP.

use fermi_blas::{Activation, Matrix, View, ViewMut, Weight};
use gdn_scan::ScanBackend;

use crate::tensors::{Loader, Tensor, projection};
use crate::{Config, Options, Result};

/// y = down(silu(gate(x)) · up(x))
#[derive(Debug)]
pub(crate) struct Mlp<B: ScanBackend> {
    gate_proj: Weight<B>,
    up_proj: Weight<B>,
    down_proj: Weight<B>,
}

impl<B: ScanBackend> Mlp<B> {
    pub(crate) fn load(loader: &Loader<'_, B>, config: &Config) -> Result<Self> {
        let [gate_proj, up_proj, down_proj] = tensors(config);
        Ok(Self {
            gate_proj: loader.weight(&gate_proj)?,
            up_proj: loader.weight(&up_proj)?,
            down_proj: loader.weight(&down_proj)?,
        })
    }

    /// # Shapes
    /// x and y `[T, hidden]`
    pub(crate) fn forward(
        &self,
        device: &B,
        x: View<'_, B>,
        activations: &mut MlpActivations<B>,
        mut weights: ViewMut<'_, B>,
        y: ViewMut<'_, B>,
    ) -> Result<()> {
        let tokens = x.rows();
        let mut gate = activations.gate.row_range_mut(0..tokens)?; // [T, intermediate]
        let mut up = activations.up.row_range_mut(0..tokens)?; // [T, intermediate]
        self.gate_proj.multiply(device, x, gate.reborrow(), weights.reborrow())?;
        self.up_proj.multiply(device, x, up.reborrow(), weights.reborrow())?;
        {
            let _span = device.span("mlp activation");
            device.gate_in_place(Activation::Silu, up.reborrow(), gate.as_view())?;
        }
        Ok(self.down_proj.multiply(device, up.as_view(), y, weights)?) // [T, hidden]
    }
}

pub(crate) fn tensors(config: &Config) -> [Tensor; 3] {
    let (hidden, intermediate) = (config.hidden_size, config.intermediate_size);
    [
        projection("mlp.gate_proj.weight", intermediate, hidden),
        projection("mlp.up_proj.weight", intermediate, hidden),
        projection("mlp.down_proj.weight", hidden, intermediate),
    ]
}

/// Scratch of the MLP.
#[derive(Debug)]
pub(crate) struct MlpActivations<B: ScanBackend> {
    /// `[T, intermediate]`
    gate: Matrix<B>,
    /// `[T, intermediate]`; then silu(gate) · up
    up: Matrix<B>,
}

impl<B: ScanBackend> MlpActivations<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let [gate, up] =
            mlp_sizes(config, options).map(|(rows, columns)| Matrix::zeros(device, rows, columns));
        Ok(Self { gate: gate?, up: up? })
    }
}

/// Rows and columns of the fields of [`MlpActivations`].
pub(crate) fn mlp_sizes(config: &Config, options: &Options) -> [(usize, usize); 2] {
    [(options.prefill_chunk, config.intermediate_size); 2]
}

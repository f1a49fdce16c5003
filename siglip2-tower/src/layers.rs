//! The two layers that everything is built of.

use fermi_blas::{Blas, Checkpoint, Gemm, Matrix, RowOps, View, ViewMut};

use crate::Result;

/// y = x · Wᵀ + b
///
/// # Shapes
/// weight `[out, in]`, bias `[1, out]`
#[derive(Debug)]
pub(crate) struct Linear<B: Blas> {
    weight: Matrix<B>,
    bias: Matrix<B>,
}

impl<B: Blas + RowOps> Linear<B> {
    pub(crate) fn load(
        device: &B,
        checkpoint: &Checkpoint,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self> {
        Ok(Self {
            weight: checkpoint.load_matrix(device, &format!("{name}.weight"), &[outputs, inputs])?,
            bias: checkpoint.load_matrix(device, &format!("{name}.bias"), &[outputs])?,
        })
    }

    /// Several layers of one input as one: their outputs lie side by side.
    pub(crate) fn load_stacked(
        device: &B,
        checkpoint: &Checkpoint,
        names: &[String],
        outputs: usize,
        inputs: usize,
    ) -> Result<Self> {
        let mut weight = Matrix::zeros(device, names.len() * outputs, inputs)?;
        let mut bias = Matrix::zeros(device, 1, names.len() * outputs)?;
        for (index, name) in names.iter().enumerate() {
            let part = Self::load(device, checkpoint, name, outputs, inputs)?;
            let range = index * outputs..(index + 1) * outputs;
            device.copy(part.weight.view(), weight.row_range_mut(range.clone())?)?;
            device.copy(part.bias.view(), bias.view_mut().column_range(range)?)?;
        }
        Ok(Self { weight, bias })
    }

    /// y = x · Wᵀ + b
    ///
    /// # Shapes
    /// x `[T, in]`, y `[T, out]`
    pub(crate) fn forward(&self, device: &B, x: View<'_, B>, mut y: ViewMut<'_, B>) -> Result<()> {
        device.gemm(Gemm::new(x, self.weight.view().t(), y.reborrow())?)?;
        Ok(device.add_in_place(y, self.bias.view())?)
    }

    /// y += x · Wᵀ + b
    ///
    /// # Shapes
    /// x `[T, in]`, y `[T, out]`
    pub(crate) fn forward_add(&self, device: &B, x: View<'_, B>, mut y: ViewMut<'_, B>) -> Result<()> {
        device.gemm(Gemm::new(x, self.weight.view().t(), y.reborrow())?.beta(1.0))?;
        Ok(device.add_in_place(y, self.bias.view())?)
    }
}

/// y = (x − mean) / √(variance + eps) · weight + bias
///
/// # Shapes
/// weight and bias `[1, width]`
#[derive(Debug)]
pub(crate) struct LayerNorm<B: Blas> {
    weight: Matrix<B>,
    bias: Matrix<B>,
    eps: f32,
}

impl<B: Blas + RowOps> LayerNorm<B> {
    pub(crate) fn load(
        device: &B,
        checkpoint: &Checkpoint,
        name: &str,
        width: usize,
        eps: f32,
    ) -> Result<Self> {
        Ok(Self {
            weight: checkpoint.load_matrix(device, &format!("{name}.weight"), &[width])?,
            bias: checkpoint.load_matrix(device, &format!("{name}.bias"), &[width])?,
            eps,
        })
    }

    /// # Shapes
    /// x and y `[T, width]`
    pub(crate) fn forward(&self, device: &B, x: View<'_, B>, y: ViewMut<'_, B>) -> Result<()> {
        let _span = device.span("layer norm");
        Ok(device.layer_norm(x, self.weight.view(), self.bias.view(), self.eps, y)?)
    }
}

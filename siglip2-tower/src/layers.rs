//! The two layers that everything is built of.

use fermi_blas::{Blas, Checkpoint, Gemm, Matrix, RowOps, View, ViewMut};

use crate::Result;

/// Outputs that are transposed at once while a weight is loaded: they fill a cache line of the target.
const STRIP: usize = 16;

/// y = x · Wᵀ + b
///
/// The weight is kept transposed: the product library then copies it as it lies, which for 256 rows of x is a quarter of
/// the whole product.
///
/// # Shapes
/// weight `[in, out]`, bias `[1, out]`
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
        Self::load_stacked(device, checkpoint, &[name.to_owned()], outputs, inputs)
    }

    /// Several layers of one input as one: their outputs lie side by side.
    pub(crate) fn load_stacked(
        device: &B,
        checkpoint: &Checkpoint,
        names: &[String],
        outputs: usize,
        inputs: usize,
    ) -> Result<Self> {
        let mut weight = Matrix::zeros(device, inputs, names.len() * outputs)?;
        let mut bias = Matrix::zeros(device, 1, names.len() * outputs)?;
        let mut strip = vec![0.0; STRIP.min(outputs) * inputs];
        for (index, name) in names.iter().enumerate() {
            let first = index * outputs;
            let values = checkpoint.load_vec(&format!("{name}.weight"), &[outputs, inputs])?;
            for (index, rows) in values.chunks(STRIP * inputs).enumerate() {
                let (start, width) = (first + index * STRIP, rows.len() / inputs);
                let strip = &mut strip[..rows.len()]; // [inputs, width]
                for (input, strip) in strip.chunks_exact_mut(width).enumerate() {
                    for (value, row) in strip.iter_mut().zip(rows.chunks_exact(inputs)) {
                        *value = row[input];
                    }
                }
                device.write(strip, weight.view_mut().column_range(start..start + width)?)?;
            }
            let values = checkpoint.load_vec(&format!("{name}.bias"), &[outputs])?;
            device.write(&values, bias.view_mut().column_range(first..first + outputs)?)?;
        }
        Ok(Self { weight, bias })
    }

    /// y = x · Wᵀ + b
    ///
    /// # Shapes
    /// x `[T, in]`, y `[T, out]`
    pub(crate) fn forward(&self, device: &B, x: View<'_, B>, mut y: ViewMut<'_, B>) -> Result<()> {
        device.gemm(Gemm::new(x, self.weight.view(), y.reborrow())?)?;
        Ok(device.add_in_place(y, self.bias.view())?)
    }

    /// y += x · Wᵀ + b
    ///
    /// # Shapes
    /// x `[T, in]`, y `[T, out]`
    pub(crate) fn forward_add(&self, device: &B, x: View<'_, B>, mut y: ViewMut<'_, B>) -> Result<()> {
        device.gemm(Gemm::new(x, self.weight.view(), y.reborrow())?.beta(1.0))?;
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

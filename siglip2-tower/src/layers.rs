//! The two layers that everything is built of.

use std::ops::Range;

use fermi_blas::{Blas, Checkpoint, Gemm, Matrix, RowOps, View, ViewMut};

use crate::Result;

/// Inputs that are transposed and sent to the device at once while a weight is loaded: few transfers, and room in a
/// processor's cache for all their outputs.
const STRIP: usize = 64;

/// Outputs that are transposed together: they fill a cache line.
const LINE: usize = 16;

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
        let mut strip = vec![0.0; STRIP.min(inputs) * outputs];
        for (index, name) in names.iter().enumerate() {
            let columns = index * outputs..(index + 1) * outputs;
            let values = checkpoint.load_vec(&format!("{name}.weight"), &[outputs, inputs])?;
            for start in (0..inputs).step_by(STRIP) {
                let rows = start..(start + STRIP).min(inputs);
                let strip = &mut strip[..rows.len() * outputs]; // [rows, outputs]
                transpose(&values, inputs, rows.clone(), strip);
                device.write(strip, weight.view_mut().row_range(rows)?.column_range(columns.clone())?)?;
            }
            let values = checkpoint.load_vec(&format!("{name}.bias"), &[outputs])?;
            device.write(&values, bias.view_mut().column_range(columns)?)?;
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

/// Some columns of a matrix of `width` columns, as the rows of `target`.
fn transpose(matrix: &[f32], width: usize, columns: Range<usize>, target: &mut [f32]) {
    let height = matrix.len() / width;
    for (index, lines) in matrix.chunks(LINE * width).enumerate() {
        for (row, column) in target.chunks_exact_mut(height).zip(columns.clone()) {
            for (value, line) in row[index * LINE..].iter_mut().zip(lines.chunks_exact(width)) {
                *value = line[column];
            }
        }
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

//! Operations on rows: norms, softmax, rotary positions, activations.

use crate::{Backend, BatchViewMut, Matrix, Result, View, ViewMut};

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x · sigmoid(x)
    Silu,
    /// 1 / (1 + exp(-x))
    Sigmoid,
    /// The tanh form of GELU: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))
    GeluTanh,
    /// GELU by the error function: x/2 · (1 + erf(x/√2))
    GeluErf,
}

/// Cosines and sines of rotary positions, one row a position.
///
/// # Shapes
/// each `[positions, rotary_dim / 2]`
#[derive(Debug)]
pub struct RotaryTable<B: Backend> {
    /// cos(position · frequency)
    pub cosines: Matrix<B>,
    /// sin(position · frequency)
    pub sines: Matrix<B>,
}

impl<B: Backend> RotaryTable<B> {
    /// The table for `positions` positions: frequency i is `theta^(-2i / rotary_dim)`.
    ///
    /// Frequencies and angles are rounded to float32 where the reference does so.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] when the device has no room.
    pub fn new(device: &B, positions: usize, rotary_dim: usize, theta: f32) -> Result<Self> {
        let half = rotary_dim / 2;
        let frequencies: Vec<f32> =
            (0..half).map(|i| 1.0 / theta.powf((2 * i) as f32 / rotary_dim as f32)).collect();
        let angles = || (0..positions).flat_map(|p| frequencies.iter().map(move |f| p as f32 * f));
        let cosines: Vec<f32> = angles().map(f32::cos).collect();
        let sines: Vec<f32> = angles().map(f32::sin).collect();
        Ok(Self {
            cosines: Matrix::from_slice(device, positions, half, &cosines)?,
            sines: Matrix::from_slice(device, positions, half, &sines)?,
        })
    }
}

/// Operations on the rows of matrices. Those that write over their input say `_in_place`.
pub trait RowOps: Backend {
    /// x += y; one row of y is added to every row of x.
    ///
    /// # Shapes
    /// x `[m, n]`, y `[m, n]` or `[1, n]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn add_in_place(&self, x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<()>;

    /// Layer norm: y = (x − mean) / √(variance + eps) · weight + bias.
    ///
    /// # Shapes
    /// x and y `[m, n]`, weight and bias `[1, n]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn layer_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        bias: View<'_, Self>,
        eps: f32,
        y: ViewMut<'_, Self>,
    ) -> Result<()>;

    /// Zero-centred RMS norm: y = x / √(mean(x²) + eps) · (1 + weight).
    ///
    /// # Shapes
    /// x and y `[m, n]`, weight `[1, n]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn rms_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
        y: ViewMut<'_, Self>,
    ) -> Result<()>;

    /// [`RowOps::rms_norm`] over the rows of a batch, written over its input: the per-head norm of queries and keys.
    ///
    /// # Shapes
    /// x `[heads, m, n]`, weight `[1, n]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn rms_norm_in_place(&self, x: BatchViewMut<'_, Self>, weight: View<'_, Self>, eps: f32) -> Result<()>;

    /// Gated RMS norm: x = weight · x / √(mean(x²) + eps) · silu(z); the weight is not zero-centred.
    ///
    /// # Shapes
    /// x and z `[m, n]`, weight `[1, n]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn gated_rms_norm_in_place(
        &self,
        x: ViewMut<'_, Self>,
        z: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
    ) -> Result<()>;

    /// Softmax of every row of x · scale.
    ///
    /// # Shapes
    /// x `[m, n]`
    ///
    /// # Errors
    /// Whatever the device reports.
    fn softmax_in_place(&self, x: ViewMut<'_, Self>, scale: f32) -> Result<()>;

    /// Softmax of the visible part of every row of x · scale; the rest becomes 0, whatever it held.
    ///
    /// Row r belongs to query r / heads, which sees the keys 0 ..= `positions[r / heads]`.
    ///
    /// # Shapes
    /// x `[queries * heads, keys]`, positions `[1, queries]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the rows are not queries * heads.
    fn causal_softmax_in_place(
        &self,
        x: ViewMut<'_, Self>,
        heads: usize,
        positions: View<'_, Self, u32>,
        scale: f32,
    ) -> Result<()>;

    /// Rotary positions on the first `2 * table columns` columns of every row, in half-split pairs (i, i + half):
    /// (a, b) becomes (a cos − b sin, b cos + a sin), with the table's row `positions[row]`.
    ///
    /// # Shapes
    /// x `[heads, rows, columns]`, positions `[1, rows]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together; [`crate::Error::Index`] on the CPU when a position is not in
    /// the table (on a GPU positions are checked by whoever uploads them).
    fn rotary_in_place(
        &self,
        x: BatchViewMut<'_, Self>,
        positions: View<'_, Self, u32>,
        table: &RotaryTable<Self>,
    ) -> Result<()>;

    /// x = f(x)
    ///
    /// # Errors
    /// Whatever the device reports.
    fn activate_in_place(&self, activation: Activation, x: ViewMut<'_, Self>) -> Result<()>;

    /// x = x · f(gate)
    ///
    /// # Shapes
    /// x and gate `[m, n]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the shapes differ.
    fn gate_in_place(&self, activation: Activation, x: ViewMut<'_, Self>, gate: View<'_, Self>)
    -> Result<()>;

    /// The first index of every row's largest value; rows with a NaN or without a finite value give `u32::MAX`.
    ///
    /// # Shapes
    /// x `[m, n]`, index `[1, m]`
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn argmax(&self, x: View<'_, Self>, index: ViewMut<'_, Self, u32>) -> Result<()>;
}

//! The kernels that only this model needs.

use fermi_blas::{Blas, Result, RowOps, View, ViewMut};

/// Patches of a window: 2 x 2.
pub const WINDOW_PATCHES: usize = 4;

/// A device that can run the window-attention merger (paper, section 4.3).
pub trait WindowBackend: Blas + RowOps {
    /// Attention within each window: rows 4w .. 4w + 4 of every head attend to one another, softmax(q · kᵀ · scaling) · v.
    ///
    /// # Shapes
    /// qkv `[4 W, 3 D]` (queries, keys, values side by side, each `heads` times D / heads), context `[4 W, D]`, without gaps
    ///
    /// # Errors
    /// [`fermi_blas::Error::Shape`] when the sizes do not fit together.
    fn window_attention(
        &self,
        qkv: View<'_, Self>,
        heads: usize,
        scaling: f32,
        context: ViewMut<'_, Self>,
    ) -> Result<()>;

    /// x += the mean of each window's 4 vectors.
    ///
    /// # Shapes
    /// windows `[4 W, D]`, x `[W, D]`
    ///
    /// # Errors
    /// [`fermi_blas::Error::Shape`] when the sizes do not fit together.
    fn add_window_mean_in_place(&self, windows: View<'_, Self>, x: ViewMut<'_, Self>) -> Result<()>;
}

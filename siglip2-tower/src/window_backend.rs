//! The kernels that only this model needs.

use fermi_blas::{Backend, Blas, Error, Result, RowOps, View, ViewMut};

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

fn check(operation: &'static str, axis: &'static str, expected: usize, actual: usize) -> Result<()> {
    if expected == actual { Ok(()) } else { Err(Error::Shape { operation, axis, expected, actual }) }
}

/// Checks the sizes of [`WindowBackend::window_attention`] and returns the width of a head.
pub(crate) fn check_attention<B: Backend>(
    qkv: &View<'_, B>,
    heads: usize,
    context: &View<'_, B>,
) -> Result<usize> {
    let (rows, width) = (context.rows(), context.columns());
    check("window_attention", "rows", rows, qkv.rows())?;
    check("window_attention", "rows", rows.next_multiple_of(WINDOW_PATCHES), rows)?;
    check("window_attention", "columns", 3 * width, qkv.columns())?;
    let head_dim = width.checked_div(heads).unwrap_or(0);
    check("window_attention", "columns", heads * head_dim, width)?;
    Ok(head_dim)
}

/// Checks the sizes of [`WindowBackend::add_window_mean_in_place`].
pub(crate) fn check_mean<B: Backend>(windows: &View<'_, B>, x: &View<'_, B>) -> Result<()> {
    check("add_window_mean_in_place", "rows", WINDOW_PATCHES * x.rows(), windows.rows())?;
    check("add_window_mean_in_place", "columns", x.columns(), windows.columns())
}

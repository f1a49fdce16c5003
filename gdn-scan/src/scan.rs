//! What a scan reads and writes.

use std::fmt;

use fermi_blas::{Backend, View, ViewMut};

use crate::error::check;
use crate::{Result, ScanShape};

/// What the reference adds under the root when it normalises queries and keys.
pub const L2_EPS: f32 = 1e-6;

/// The inputs of a scan. Views may be column ranges of wider matrices: only rows must lie in one piece.
///
/// # Shapes
/// q, k `[T, Hk * Dk]`, v `[T, Hv * Dv]`, g, beta `[T, Hv]`; float32
pub struct ScanInputs<'a, B: Backend> {
    /// Queries.
    pub q: View<'a, B>,
    /// Keys.
    pub k: View<'a, B>,
    /// Values.
    pub v: View<'a, B>,
    /// Natural logarithms of the decays, at most 0.
    pub g: View<'a, B>,
    /// Writing strengths, 0 to 1.
    pub beta: View<'a, B>,
}

impl<B: Backend> Clone for ScanInputs<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for ScanInputs<'_, B> {}

impl<B: Backend> fmt::Debug for ScanInputs<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { q, k, v, g, beta } = self;
        f.debug_struct("ScanInputs")
            .field("q", q)
            .field("k", k)
            .field("v", v)
            .field("g", g)
            .field("beta", beta)
            .finish()
    }
}

/// One gated delta rule over T tokens and all heads.
///
/// With q and k normalised and q scaled, every value head keeps a state S `[Dk, Dv]` and for each token computes
///
/// ```text
/// S ← exp(g) S          δ = β (v − Sᵀ k)          S ← S + k δᵀ          o = Sᵀ q
/// ```
///
/// The state that is handed in is where the scan starts, and holds where it ended afterwards: a sequence may be cut
/// anywhere, and no tokens leave the state as it is.
///
/// # Shapes
/// inputs as in [`ScanInputs`]; state `[Hv * Dk, Dv]` without gaps; out `[T, Hv * Dv]`; float32
///
/// # Source
/// Section 3.2 of the paper; Yang et al., "Gated Delta Networks" (2024).
#[derive(Debug)]
pub struct Scan<'a, B: Backend> {
    pub(crate) shape: ScanShape,
    pub(crate) inputs: ScanInputs<'a, B>,
    pub(crate) state: ViewMut<'a, B>,
    pub(crate) out: ViewMut<'a, B>,
    pub(crate) scale: f32,
    pub(crate) l2_normalize: Option<f32>,
}

impl<'a, B: Backend> Scan<'a, B> {
    /// The rule as the models use it: q and k are normalised with [`L2_EPS`], and q is scaled by 1/√Dk.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together or the state's rows have gaps.
    pub fn new(
        shape: ScanShape,
        inputs: ScanInputs<'a, B>,
        state: ViewMut<'a, B>,
        out: ViewMut<'a, B>,
    ) -> Result<Self> {
        let operation = "scan";
        let ScanInputs { q, k, v, g, beta } = inputs;
        let tokens = q.rows();
        let rows = [("k rows", k.rows()), ("v rows", v.rows()), ("g rows", g.rows())];
        let more = [("beta rows", beta.rows()), ("out rows", out.rows())];
        for (axis, actual) in rows.into_iter().chain(more) {
            check(operation, axis, tokens, actual)?;
        }
        let keys = shape.key_heads() * shape.key_width();
        let values = shape.value_heads() * shape.value_width();
        check(operation, "q columns", keys, q.columns())?;
        check(operation, "k columns", keys, k.columns())?;
        check(operation, "v columns", values, v.columns())?;
        check(operation, "g columns", shape.value_heads(), g.columns())?;
        check(operation, "beta columns", shape.value_heads(), beta.columns())?;
        check(operation, "out columns", values, out.columns())?;
        check(operation, "state rows", shape.value_heads() * shape.key_width(), state.rows())?;
        check(operation, "state columns", shape.value_width(), state.columns())?;
        if !state.as_view().is_contiguous() {
            check(operation, "state row stride", shape.value_width(), state.as_view().row_stride())?;
        }
        let scale = 1.0 / (shape.key_width().max(1) as f32).sqrt();
        Ok(Self { shape, inputs, state, out, scale, l2_normalize: Some(L2_EPS) })
    }

    /// The same with q scaled by `scale`.
    #[must_use]
    pub fn scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// The same with q and k divided by √(Σx² + eps) head by head, or taken as they are.
    #[must_use]
    pub fn l2_normalize(self, eps: Option<f32>) -> Self {
        Self { l2_normalize: eps, ..self }
    }

    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.inputs.q.rows()
    }
}

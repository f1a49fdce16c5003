//! Decays and writing strengths.

use fermi_blas::{Backend, View, ViewMut};

use crate::Result;
use crate::error::check;

/// The two gates of every value head: g = −exp(A_log) · softplus(a + dt_bias) and β = sigmoid(b).
///
/// # Shapes
/// a, b, g, beta `[T, Hv]`; a_log, dt_bias `[1, Hv]`; float32, g as a natural logarithm
#[derive(Debug)]
pub struct Gates<'a, B: Backend> {
    /// The projection that widens or narrows the time step.
    pub a: View<'a, B>,
    /// The projection that becomes the writing strength.
    pub b: View<'a, B>,
    /// Logarithms of the heads' decay rates.
    pub a_log: View<'a, B>,
    /// What is added to `a`.
    pub dt_bias: View<'a, B>,
    /// Where the logarithms of the decays go.
    pub g: ViewMut<'a, B>,
    /// Where the writing strengths go.
    pub beta: ViewMut<'a, B>,
}

impl<B: Backend> Gates<'_, B> {
    /// Fails unless all sizes fit together.
    pub(crate) fn check(&self) -> Result<()> {
        let operation = "gates";
        let (tokens, heads) = (self.a.rows(), self.a.columns());
        check(operation, "b rows", tokens, self.b.rows())?;
        check(operation, "g rows", tokens, self.g.rows())?;
        check(operation, "beta rows", tokens, self.beta.rows())?;
        check(operation, "b columns", heads, self.b.columns())?;
        check(operation, "g columns", heads, self.g.columns())?;
        check(operation, "beta columns", heads, self.beta.columns())?;
        check(operation, "a_log rows", 1, self.a_log.rows())?;
        check(operation, "a_log columns", heads, self.a_log.columns())?;
        check(operation, "dt_bias rows", 1, self.dt_bias.rows())?;
        check(operation, "dt_bias columns", heads, self.dt_bias.columns())
    }
}

//! The causal convolution in front of the scan.

use fermi_blas::{Activation, Backend, View, ViewMut};

use crate::error::check;
use crate::{Error, Result};

/// A depthwise causal convolution: channel by channel, y_t = f(Σ_j weight_j · x_(t − K + 1 + j)).
///
/// Inputs before the first one come from the state, which afterwards holds the last K − 1 inputs (any number of tokens,
/// fewer than K − 1 or none too).
///
/// # Shapes
/// x and out `[T, C]`; weight `[K, C]`, one row a tap, the oldest input's first (a checkpoint's `conv1d.weight`
/// `[C, 1, K]` transposed); state `[K − 1, C]` without gaps, one row an input, the oldest first; float32
#[derive(Debug)]
pub struct CausalConv<'a, B: Backend> {
    pub(crate) x: View<'a, B>,
    pub(crate) weight: View<'a, B>,
    pub(crate) state: ViewMut<'a, B>,
    pub(crate) out: ViewMut<'a, B>,
    pub(crate) activation: Option<Activation>,
}

impl<'a, B: Backend> CausalConv<'a, B> {
    /// The convolution followed by SiLU, as the models use it.
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes do not fit together or the state's rows have gaps, [`Error::NoTaps`].
    pub fn new(
        x: View<'a, B>,
        weight: View<'a, B>,
        state: ViewMut<'a, B>,
        out: ViewMut<'a, B>,
    ) -> Result<Self> {
        let operation = "causal_conv";
        if weight.rows() == 0 {
            return Err(Error::NoTaps { operation });
        }
        check(operation, "weight columns", x.columns(), weight.columns())?;
        check(operation, "state rows", weight.rows() - 1, state.rows())?;
        check(operation, "state columns", x.columns(), state.columns())?;
        check(operation, "out rows", x.rows(), out.rows())?;
        check(operation, "out columns", x.columns(), out.columns())?;
        if !state.as_view().is_contiguous() {
            check(operation, "state row stride", x.columns(), state.as_view().row_stride())?;
        }
        Ok(Self { x, weight, state, out, activation: Some(Activation::Silu) })
    }

    /// The same with another function behind it, or none.
    #[must_use]
    pub fn activation(self, activation: Option<Activation>) -> Self {
        Self { activation, ..self }
    }
}

//! From the last residual to logits.

use fermi_blas::{Matrix, Observer, View, ViewMut, Weight};
use gdn_scan::ScanBackend;

use crate::tensors::{LM_HEAD, Tensor, float32, projection};
use crate::{Config, Options, Result};

/// The final norm, `norm.weight`.
pub(crate) fn norm_tensor(config: &Config) -> Tensor {
    float32("norm.weight", [config.hidden_size])
}

/// The head of an untied model, `lm_head.weight`, `[vocab, hidden]`.
pub(crate) fn tensor(config: &Config) -> Tensor {
    projection(LM_HEAD, config.vocab_size, config.hidden_size)
}

/// logits = head(norm(x))
#[derive(Debug)]
pub(crate) struct Head<'a, B: ScanBackend> {
    pub(crate) device: &'a B,
    pub(crate) norm: &'a Matrix<B>,
    pub(crate) weight: &'a Weight<B>,
    pub(crate) eps: f32,
}

/// Scratch and output of the head.
#[derive(Debug)]
pub(crate) struct HeadActivations<B: ScanBackend> {
    /// Logits of the last positions, `[R, vocab]`
    pub(crate) logits: Matrix<B>,
    /// The greedy choice, `[1, 1]`
    pub(crate) chosen: Matrix<B, u32>,
    /// The row of `logits` that belongs to the newest token.
    pub(crate) newest: usize,
}

impl<B: ScanBackend> HeadActivations<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let (rows, columns) = logits_size(config, options);
        Ok(Self {
            logits: Matrix::zeros(device, rows, columns)?,
            chosen: Matrix::zeros(device, 1, 1)?,
            newest: 0,
        })
    }
}

/// Rows and columns of the logits.
pub(crate) fn logits_size(config: &Config, options: &Options) -> (usize, usize) {
    (options.logits_rows, config.vocab_size)
}

impl<B: ScanBackend> Head<'_, B> {
    /// # Shapes
    /// hidden and normed `[R, hidden]`
    pub(crate) fn normalize(&self, hidden: View<'_, B>, normed: ViewMut<'_, B>) -> Result<()> {
        let _span = self.device.span("norm");
        Ok(self.device.rms_norm(hidden, self.norm.view(), self.eps, normed)?)
    }

    /// Logits of some rows, as many at a time as there is room for; the last ones stay.
    ///
    /// # Shapes
    /// normed `[R, hidden]`
    pub(crate) fn logits(
        &self,
        normed: View<'_, B>,
        activations: &mut HeadActivations<B>,
        mut weights: ViewMut<'_, B>,
        observer: &mut impl Observer<B>,
    ) -> Result<()> {
        let step = activations.logits.rows();
        let mut start = 0;
        while start < normed.rows() {
            let end = (start + step).min(normed.rows());
            let mut logits = activations.logits.row_range_mut(0..end - start)?; // [R, vocab]
            let x = normed.row_range(start..end)?;
            self.weight.multiply(self.device, x, logits.reborrow(), weights.reborrow())?;
            observer.stage(format_args!("logits"), logits.as_view())?;
            activations.newest = end - start - 1;
            start = end;
        }
        Ok(())
    }
}

//! What a device must be able to do for the scan.

use fermi_blas::{Blas, RowOps, ViewMut};

use crate::{CausalConv, Gates, Result, Scan, ScanShape};

/// The gated delta rule and what stands before it, on one device.
///
/// Each method books its time under `scan: ...` if the device keeps a profile.
pub trait ScanBackend: Blas + RowOps {
    /// The causal convolution; see [`CausalConv`].
    ///
    /// # Errors
    /// Whatever the device reports.
    fn causal_conv(&self, conv: CausalConv<'_, Self>) -> Result<()>;

    /// Decays and writing strengths; see [`Gates`].
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the sizes do not fit together.
    fn gates(&self, gates: Gates<'_, Self>) -> Result<()>;

    /// Values of scratch that [`ScanBackend::chunk_forward`] needs for at most `tokens` tokens in chunks of `chunk_len`.
    fn chunk_scratch_len(&self, shape: ScanShape, tokens: usize, chunk_len: usize) -> usize;

    /// The scan in chunks of `chunk_len` tokens: within a chunk by matrix products and one forward substitution, from
    /// chunk to chunk by the state.
    ///
    /// One method, so that a device may fuse what another keeps apart. What the scratch holds before and after means
    /// nothing.
    ///
    /// # Shapes
    /// scratch at least [`ScanBackend::chunk_scratch_len`] values, without gaps
    ///
    /// # Errors
    /// [`crate::Error::EmptyChunk`], [`crate::Error::Scratch`], or whatever the device reports.
    ///
    /// # Source
    /// Section 3.2 of the paper.
    fn chunk_forward(&self, scan: Scan<'_, Self>, chunk_len: usize, scratch: ViewMut<'_, Self>)
    -> Result<()>;

    /// The scan token by token, as the rule is written; one token is one step of decoding.
    ///
    /// # Errors
    /// Whatever the device reports.
    fn recurrent_forward(&self, scan: Scan<'_, Self>) -> Result<()>;
}

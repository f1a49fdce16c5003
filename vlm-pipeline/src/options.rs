//! How a pipeline is loaded.

use std::fmt;
use std::sync::Arc;

use fermi_blas::Precision;

use crate::slicing::DownsampleMode;

/// Called while weights are read, with the bytes read so far and the bytes of all tensors.
pub type ProgressCallback = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// What a caller chooses when a pipeline is loaded.
#[derive(Clone)]
pub struct Options {
    /// What the backbone's weights are kept as; the tower is float32 always.
    pub precision: Precision,
    /// Tokens that a conversation has room for.
    pub context_length: usize,
    /// Tokens that go through the backbone together.
    pub prefill_chunk: usize,
    /// Query rows whose attention scores exist at once, in the tower and, against a full context, in the backbone.
    pub attention_rows: usize,
    /// How many patches become one token; the checkpoint's mode if none is given.
    pub downsample_mode: Option<DownsampleMode>,
    /// The most slices that a picture is cut into; the checkpoint's number if none is given.
    pub max_slices: Option<u32>,
    /// Patches that one pass of the tower takes at most, and one slice may have. 1,280 is room for pictures of up to ten
    /// times as wide as high; beyond that a picture is a typed error that names what it needs.
    pub max_patches: usize,
    /// Whether a session keeps a copy of its state at the last chunk boundary of the prompt, so that the next turn need not
    /// run what came before again. It holds the memory of one more sequence.
    pub keep_prefix: bool,
    /// Told how far the reading of the weights has come.
    pub progress: Option<ProgressCallback>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            precision: Precision::Q8,
            context_length: 16_384,
            prefill_chunk: 512,
            attention_rows: 256,
            downsample_mode: None,
            max_slices: None,
            max_patches: 1_280,
            keep_prefix: true,
            progress: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("precision", &self.precision)
            .field("context_length", &self.context_length)
            .field("prefill_chunk", &self.prefill_chunk)
            .field("attention_rows", &self.attention_rows)
            .field("downsample_mode", &self.downsample_mode)
            .field("max_slices", &self.max_slices)
            .field("max_patches", &self.max_patches)
            .field("keep_prefix", &self.keep_prefix)
            .finish_non_exhaustive()
    }
}

//! How a backbone is loaded.

use fermi_blas::Precision;

use crate::{Config, Error, Result};

/// Tokens beyond which a sequence's bytes could not be counted for every config.
const MAX_CONTEXT: usize = 1 << 26;

/// How a backbone is kept and how much it may do in one pass. Everything that a pass needs is allocated for these sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What the embedding table, the head and the projections are kept as. Norms, convolutions and the two small
    /// projections of the delta net's gates are float32 always.
    pub precision: Precision,
    /// Tokens that a sequence has room for.
    pub context_length: usize,
    /// Tokens that go through the layers together.
    pub prefill_chunk: usize,
    /// Query rows of softmax attention whose scores against a full context exist at once; while it is shorter, more do.
    pub attention_rows: usize,
    /// Positions whose logits exist at once; more than one is of use only for looking at all of them.
    pub logits_rows: usize,
    /// Tokens of a chunk of the delta rule's chunked form.
    pub scan_chunk: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            precision: Precision::Q8,
            context_length: 16_384,
            prefill_chunk: 512,
            attention_rows: 256,
            logits_rows: 1,
            scan_chunk: 64,
        }
    }
}

impl Options {
    /// Another precision.
    #[must_use]
    pub fn precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// Room for another number of tokens.
    #[must_use]
    pub fn context_length(self, context_length: usize) -> Self {
        Self { context_length, ..self }
    }

    /// Another number of tokens a pass.
    #[must_use]
    pub fn prefill_chunk(self, prefill_chunk: usize) -> Self {
        Self { prefill_chunk, ..self }
    }

    /// Another number of query rows a block.
    #[must_use]
    pub fn attention_rows(self, attention_rows: usize) -> Self {
        Self { attention_rows, ..self }
    }

    /// Another number of positions whose logits exist at once.
    #[must_use]
    pub fn logits_rows(self, logits_rows: usize) -> Self {
        Self { logits_rows, ..self }
    }

    /// Another chunk of the delta rule.
    #[must_use]
    pub fn scan_chunk(self, scan_chunk: usize) -> Self {
        Self { scan_chunk, ..self }
    }

    /// The same without sizes that can never be used: no chunk is longer than the context.
    ///
    /// # Errors
    /// [`Error::LoadOption`] when a size is 0 or too large to be counted.
    pub(crate) fn checked(&self, config: &Config) -> Result<Self> {
        for (option, value) in [
            ("context_length", self.context_length),
            ("prefill_chunk", self.prefill_chunk),
            ("attention_rows", self.attention_rows),
            ("logits_rows", self.logits_rows),
            ("scan_chunk", self.scan_chunk),
        ] {
            let most = if option == "context_length" { MAX_CONTEXT } else { usize::MAX };
            if !(1..=most).contains(&value) {
                return Err(Error::LoadOption { option, value, most });
            }
        }
        let prefill_chunk = self.prefill_chunk.min(self.context_length);
        let checked = Self {
            prefill_chunk,
            attention_rows: self.attention_rows.min(prefill_chunk),
            logits_rows: self.logits_rows.min(prefill_chunk),
            scan_chunk: self.scan_chunk.min(prefill_chunk),
            ..self.clone()
        };
        // The largest buffers of a pass: where their bytes can be counted, all others' can.
        let rows = checked.attention_rows.max(checked.logits_rows);
        let widest = config.num_attention_heads.saturating_mul(self.context_length).max(config.vocab_size);
        let overflow = fermi_blas::Error::SizeOverflow { operation: "Options" };
        rows.checked_mul(widest).filter(|len| *len < isize::MAX as usize / 64).ok_or(overflow)?;
        Ok(checked)
    }
}

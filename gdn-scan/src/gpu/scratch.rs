//! How the chunked scan's scratch is divided.

use crate::ScanShape;

/// Values to which every part is rounded up, so that products find their matrices aligned.
const ALIGNMENT: usize = 64;

/// Sizes of a pass. They saturate, so that an absurd request fails where it is allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) shape: ScanShape,
    /// Tokens of a chunk, C.
    pub(super) chunk: usize,
    /// Chunks of a head; the last is filled up with tokens that change nothing.
    pub(super) chunks: usize,
}

/// Addresses of the parts. An entry is one chunk of one value head, head by head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// High and low running sums, β, exp(G), exp(G_last − G): each `[Hv, N * C]`.
    pub(super) factors: u64,
    /// Keys, then queries: an entry `[2C, Dk]`.
    pub(super) keys_queries: u64,
    /// K Kᵀ, which becomes A, then Q Kᵀ: an entry `[2C, C]`.
    pub(super) scores: u64,
    /// (I + A)⁻¹ diag(β): an entry `[C, C]`.
    pub(super) solved: u64,
    /// (I + A)⁻¹ diag(β exp(G)): an entry `[C, C]`.
    pub(super) decayed: u64,
    /// Values, later the outputs: an entry `[C, Dv]`.
    pub(super) values: u64,
    /// Wᵀ: an entry `[Dk, C]`.
    pub(super) w: u64,
    /// Q Kᵀ ∘ D beside exp(G) Q: an entry `[C, C + Dk]`.
    pub(super) mixed: u64,
    /// U, which becomes δ, above the state at the chunk's start: an entry `[C + Dk, Dv]`.
    pub(super) corrections: u64,
}

impl Layout {
    pub(super) fn new(shape: ScanShape, tokens: usize, chunk_len: usize) -> Self {
        let chunk = chunk_len.min(tokens);
        Self { shape, chunk, chunks: if chunk == 0 { 0 } else { tokens.div_ceil(chunk) } }
    }

    /// Chunks of all heads.
    pub(super) fn entries(&self) -> usize {
        self.shape.value_heads().saturating_mul(self.chunks)
    }

    /// Tokens of all heads, with those that fill up the last chunks.
    pub(super) fn rows(&self) -> usize {
        self.entries().saturating_mul(self.chunk)
    }

    /// Values of each part, in the order of [`Parts`].
    fn lengths(&self) -> [usize; 9] {
        let (key_width, value_width) = (self.shape.key_width(), self.shape.value_width());
        let (rows, both) = (self.rows(), self.chunk.saturating_add(key_width));
        [
            rows.saturating_mul(5),
            rows.saturating_mul(2).saturating_mul(key_width),
            rows.saturating_mul(2).saturating_mul(self.chunk),
            rows.saturating_mul(self.chunk),
            rows.saturating_mul(self.chunk),
            rows.saturating_mul(value_width),
            rows.saturating_mul(key_width),
            rows.saturating_mul(both),
            self.entries().saturating_mul(both).saturating_mul(value_width),
        ]
        .map(|length| length.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX))
    }

    /// Values of the whole scratch.
    pub(super) fn total(&self) -> usize {
        self.lengths().into_iter().fold(0, usize::saturating_add)
    }

    /// The parts of a scratch at this address.
    pub(super) fn parts(&self, address: u64) -> Parts {
        let mut next = address;
        let [factors, keys_queries, scores, solved, decayed, values, w, mixed, corrections] =
            self.lengths().map(|length| {
                let address = next;
                next += (length * size_of::<f32>()) as u64;
                address
            });
        Parts { factors, keys_queries, scores, solved, decayed, values, w, mixed, corrections }
    }
}

//! The chunked scan, head by head.
//!
//! Within a chunk of C tokens, with A_ij = β_i exp(G_i − G_j) k_i·k_j below the diagonal, the corrections δ solve
//!
//! ```text
//! (I + A) δ = β (v − exp(G) K S)          o = exp(G) Q S + (Q Kᵀ ∘ D) δ          S ← exp(G_last) S + (exp(G_last − G) K)ᵀ δ
//! ```
//!
//! where D_ij = exp(G_i − G_j) on and below the diagonal. In the literature's two-part form (I + A) U = β v and
//! (I + A) W = β exp(G) K, and δ = U − W S. Here a head's chunks follow one another anyway, so S is known when a chunk is
//! solved and one substitution over Dv columns does what two over Dv + Dk columns would.

use fermi_blas::{Backend, Cpu, ViewMut};
use pulp::Arch;

use super::cumsum::Decays;
use super::head::{Head, Heads};
use super::l2norm::Normalized;
use super::matmul::{LANES, Product, Rows, padded, row_stride};
use super::prefetch::prefetch;
use super::transpose::Transpose;
use super::{chunk_output, chunk_state, kkt, solve_tril, wy};
use crate::{Error, Result, Scan, ScanShape};

/// How one head's scratch is divided. Sizes saturate, so that an absurd request fails where it is allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) shape: ScanShape,
    /// Tokens of a chunk.
    pub(super) chunk: usize,
    /// Row stride of matrices `[_, Dk]`.
    pub(super) key_stride: usize,
    /// Row stride of matrices `[_, Dv]`.
    pub(super) value_stride: usize,
    /// Row stride of matrices `[_, C]`.
    pub(super) chunk_stride: usize,
}

impl Layout {
    pub(super) fn new(shape: ScanShape, tokens: usize, chunk_len: usize) -> Self {
        // Lengths of this size cannot be held anyway, and rounding them up must not overflow.
        const LONGEST: usize = usize::MAX >> 8;
        let chunk = chunk_len.min(tokens).min(LONGEST);
        Self {
            shape,
            chunk,
            key_stride: row_stride(shape.key_width().min(LONGEST)),
            value_stride: row_stride(shape.value_width().min(LONGEST)),
            chunk_stride: row_stride(chunk),
        }
    }

    /// Values for one head, in whole cache lines.
    fn head(&self) -> usize {
        let two = self.chunk.saturating_mul(2);
        let parts = [
            two.saturating_mul(self.key_stride),
            self.shape.key_width().saturating_mul(self.chunk_stride),
            two.saturating_mul(self.chunk_stride),
            two.saturating_mul(self.value_stride),
            self.shape.key_width().saturating_mul(self.value_stride),
            self.chunk.saturating_mul(4),
        ];
        parts.into_iter().fold(LANES, usize::saturating_add) / LANES * LANES
    }

    /// Values for all heads.
    pub(super) fn total(&self) -> usize {
        self.head().saturating_mul(self.shape.value_heads())
    }
}

/// One head's scratch. Matrices of keys stand above their twins of queries, so that one product serves both.
pub(super) struct Chunk<'a> {
    pub(super) arch: Arch,
    pub(super) layout: Layout,
    /// Tokens of the present chunk, n.
    pub(super) count: usize,
    /// Keys, then queries `[2n, Dk]`.
    pub(super) keys_queries: &'a mut [f32],
    /// Keys transposed `[Dk, n]`.
    pub(super) keys_t: &'a mut [f32],
    /// A, then Q Kᵀ ∘ D `[2n, n]`.
    pub(super) scores: &'a mut [f32],
    /// K S, which becomes δ, then Q S, which becomes the output `[2n, Dv]`.
    pub(super) reads: &'a mut [f32],
    /// S `[Dk, Dv]`.
    pub(super) state: &'a mut [f32],
    /// Running sums of g.
    pub(super) decays: Decays<'a>,
}

impl<'a> Chunk<'a> {
    fn new(layout: Layout, scratch: &'a mut [f32]) -> Self {
        let (chunk, key_width) = (layout.chunk, layout.shape.key_width());
        let (keys_queries, rest) = scratch.split_at_mut(2 * chunk * layout.key_stride);
        let (keys_t, rest) = rest.split_at_mut(key_width * layout.chunk_stride);
        let (scores, rest) = rest.split_at_mut(2 * chunk * layout.chunk_stride);
        let (reads, rest) = rest.split_at_mut(2 * chunk * layout.value_stride);
        let (state, rest) = rest.split_at_mut(key_width * layout.value_stride);
        let (high, rest) = rest.split_at_mut(chunk);
        let (low, rest) = rest.split_at_mut(chunk);
        let (from_start, rest) = rest.split_at_mut(chunk);
        let decays = Decays { high, low, from_start, to_end: &mut rest[..chunk] };
        // Columns that pad a row take part in products: they must be numbers.
        keys_t.fill(0.0);
        state.fill(0.0);
        Self { arch: Arch::new(), layout, count: 0, keys_queries, keys_t, scores, reads, state, decays }
    }

    /// Copies the chunk's keys and queries, normalised and scaled, and the keys' transpose.
    fn gather(&mut self, head: &Head<'_>, start: usize) {
        let (count, width, stride) = (self.count, head.key_width(), self.layout.key_stride);
        let (keys, queries) = self.keys_queries.split_at_mut(count * stride);
        for i in 0..count {
            let (token, ahead) = (start + i, start + i + AHEAD);
            if ahead < head.tokens() {
                prefetch(head.k(ahead));
                prefetch(head.q(ahead));
                prefetch(head.v(ahead));
            }
            let eps = head.l2_normalize;
            let to = &mut keys[i * stride..][..width];
            self.arch.dispatch(Normalized { from: head.k(token), scale: 1.0, eps, to });
            let to = &mut queries[i * stride..][..width];
            self.arch.dispatch(Normalized { from: head.q(token), scale: head.scale, eps, to });
        }
        self.arch.dispatch(Transpose {
            size: (count, width),
            from: Rows { values: keys, stride },
            to: self.keys_t,
            to_stride: self.layout.chunk_stride,
        });
    }

    /// One chunk, from the tokens at `start` to its outputs and the state behind it.
    fn run(&mut self, device: &Cpu, head: &Head<'_>, start: usize) {
        {
            let _span = device.span("scan: gather");
            self.gather(head, start);
        }
        {
            let _span = device.span("scan: cumsum");
            self.decays.fill(self.count, |i| head.g(start + i));
        }
        {
            let _span = device.span("scan: kkt");
            kkt::scores(self, |i| head.beta(start + i));
        }
        {
            let _span = device.span("scan: read state");
            self.read_state();
        }
        {
            let _span = device.span("scan: wy");
            wy::right_hand_sides(self, |i| head.v(start + i), |i| head.beta(start + i));
        }
        {
            let _span = device.span("scan: solve_tril");
            solve_tril::solve(self);
        }
        {
            let _span = device.span("scan: chunk_output");
            chunk_output::attend(self);
        }
        let _span = device.span("scan: chunk_state");
        chunk_state::update(self);
    }

    /// K S and Q S in one product.
    fn read_state(&mut self) {
        let width = self.layout.shape.key_width();
        Product {
            size: (2 * self.count, width, padded(self.layout.shape.value_width())),
            a: Rows { values: self.keys_queries, stride: self.layout.key_stride },
            a_transposed: false,
            b: Rows { values: self.state, stride: self.layout.value_stride },
            c: self.reads,
            c_stride: self.layout.value_stride,
            alpha: 1.0,
            beta: 0.0,
        }
        .run(self.arch);
    }
}

/// Tokens between the one that is copied and the one that is fetched: rows lie a whole model width apart, where the
/// processor does not guess them.
const AHEAD: usize = 8;

pub(super) fn chunk_forward(
    device: &Cpu,
    scan: Scan<'_, Cpu>,
    chunk_len: usize,
    scratch: ViewMut<'_, Cpu>,
) -> Result<()> {
    let operation = "chunk_forward";
    if chunk_len == 0 {
        return Err(Error::EmptyChunk { operation });
    }
    let heads = Heads::new(&scan);
    let (shape, tokens) = (heads.shape, heads.tokens());
    let layout = Layout::new(shape, tokens, chunk_len);
    let (needed, available) = (layout.total(), scratch.rows() * scratch.columns());
    if available < needed {
        return Err(Error::Scratch { operation, needed, available });
    }
    let count = shape.value_heads();
    if tokens == 0 || count == 0 || shape.value_width() == 0 {
        return Ok(());
    }
    let scratch = scratch.reshape(1, available)?.column_range(0..needed)?.reshape(count, layout.head())?;
    let scratch = scratch.share_rows();
    let state = scan.state.reshape(count, shape.key_width() * shape.value_width())?.share_rows();
    let out = scan.out.heads(count)?.share_rows();
    let elements = tokens.saturating_mul(shape.state_len().max(count * shape.value_width()));
    device.for_each(count, elements, |index| {
        // SAFETY: every head is visited once, and takes its own row of the scratch and of the state.
        let (scratch, state) = unsafe { (scratch.row_mut(0, index), state.row_mut(0, index)) };
        let (head, mut chunk) = (heads.head(index), Chunk::new(layout, scratch));
        chunk_state::load(&mut chunk, state);
        for start in (0..tokens).step_by(layout.chunk) {
            chunk.count = layout.chunk.min(tokens - start);
            chunk.run(device, &head, start);
            for i in 0..chunk.count {
                // SAFETY: every (head, token) is visited once.
                chunk_output::store(&chunk, i, unsafe { out.row_mut(index, start + i) });
            }
        }
        chunk_state::store(&chunk, state);
    });
    Ok(())
}

//! The chunked scan, stage by stage.
//!
//! Within a chunk of C tokens, with A_ij = β_i exp(G_i − G_j) k_i·k_j below the diagonal and D_ij = exp(G_i − G_j) on and
//! below it,
//!
//! ```text
//! U = (I + A)⁻¹ β V        W = (I + A)⁻¹ β exp(G) K        δ = U − W S        S ← exp(G_last) S + (exp(G_last − G) K)ᵀ δ
//!
//! o = [Q Kᵀ ∘ D | exp(G) Q] [δ ; S]
//! ```
//!
//! U and W do not depend on the state: they are made for all chunks at once, and so are the outputs once every chunk's state
//! is known.

use fermi_blas::gpu::{Gpu, Runtime};
use fermi_blas::{View, ViewMut};

use super::scratch::{Layout, Parts};
use super::{chunk_output, chunk_state, cumsum, gather, kkt, recurrent, solve_tril, wy};
use crate::{Error, Result, Scan, ScanInputs};

/// Everything that the stages work on.
pub(super) struct Pass<'a, R: Runtime> {
    pub(super) device: &'a Gpu<R>,
    pub(super) layout: Layout,
    pub(super) parts: Parts,
    pub(super) inputs: ScanInputs<'a, Gpu<R>>,
    pub(super) scale: f32,
    pub(super) l2_normalize: Option<f32>,
}

impl<'a, R: Runtime> Pass<'a, R> {
    /// Number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.inputs.q.rows()
    }

    /// The address of one of the runs of factors.
    pub(super) fn factor(&self, index: usize) -> u64 {
        self.parts.factors + (index * self.layout.rows() * size_of::<f32>()) as u64
    }

    /// The address of an input and the distance of its rows.
    pub(super) fn input(view: View<'a, Gpu<R>>) -> (u64, usize) {
        (view.address(), view.row_stride())
    }
}

pub(super) fn chunk_forward<R: Runtime>(
    device: &Gpu<R>,
    scan: Scan<'_, Gpu<R>>,
    chunk_len: usize,
    scratch: ViewMut<'_, Gpu<R>>,
) -> Result<()> {
    let operation = "chunk_forward";
    if chunk_len == 0 {
        return Err(Error::EmptyChunk { operation });
    }
    let (shape, tokens) = (scan.shape, scan.tokens());
    let layout = Layout::new(shape, tokens, chunk_len);
    let (needed, available) = (layout.total(), scratch.rows() * scratch.columns());
    if available < needed {
        return Err(Error::Scratch { operation, needed, available });
    }
    if tokens * shape.value_heads() * shape.value_width() == 0 {
        return Ok(());
    }
    if shape.key_width() == 0 {
        // Without keys there is nothing to multiply: every output is 0.
        return recurrent::recurrent_forward(device, scan);
    }
    let mut scratch = scratch.reshape(1, available)?;
    let Scan { inputs, mut state, mut out, scale, l2_normalize, .. } = scan;
    let parts = layout.parts(scratch.address());
    let pass = Pass { device, layout, parts, inputs, scale, l2_normalize };
    cumsum::sums(&pass)?;
    gather::gather(&pass)?;
    kkt::scores(&pass)?;
    solve_tril::solve(&pass)?;
    wy::representation(&pass)?;
    chunk_state::states(&pass, state.reborrow())?;
    chunk_output::outputs(&pass, out.reborrow())
}

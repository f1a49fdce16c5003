//! From chunk to chunk: δ = U − W S, then S ← exp(G_last) S + (exp(G_last − G) K)ᵀ δ.

use fermi_blas::gpu::{Gpu, Runtime, Shape};
use fermi_blas::{Backend, ViewMut};

use super::arguments;
use super::chunk::Pass;
use super::kernels::{chunk_state as kernels, chunk_state_wide as wide};
use crate::Result;

const THREADS: u32 = 256;
const WIDE_THREADS: u32 = 512;

/// Value columns of a block of either kernel; see `kernels/chunk_state.cu`.
const COLUMNS: usize = 16;

/// The sizes that the fast kernel is made for: keys, and tokens of a chunk.
const KEYS: usize = 128;
const TOKENS: usize = 64;

pub(super) fn states<R: Runtime>(pass: &Pass<'_, R>, mut state: ViewMut<'_, Gpu<R>>) -> Result<()> {
    let _span = pass.device.span("scan: chunk_state");
    let (layout, parts, state) = (pass.layout, pass.parts, state.address());
    let (heads, chunks, chunk) = (layout.shape.value_heads(), layout.chunks, layout.chunk);
    let (key_width, value_width) = (layout.shape.key_width(), layout.shape.value_width());
    let (w, keys, mixed) = (parts.w, parts.keys_queries, parts.corrections);
    let (whole, to_end) = (pass.factor(3), pass.factor(4));
    let blocks = heads * value_width.div_ceil(COLUMNS);
    let by_fours = value_width % 4 == 0 && [w, keys, mixed, state].iter().all(|address| address % 16 == 0);
    if key_width == KEYS && chunk == TOKENS && by_fours {
        let arguments = arguments![w, keys, to_end, whole, mixed, state, heads, chunks, value_width];
        // SAFETY: the kernel's arguments; the sizes were checked, and the state and the scratch are exclusive.
        return Ok(unsafe {
            pass.device.launch(kernels::chunk_state, Shape::blocks(blocks, THREADS), &arguments)
        }?);
    }
    let arguments =
        arguments![w, keys, to_end, whole, mixed, state, heads, chunks, chunk, key_width, value_width];
    let shape = Shape::blocks(blocks, WIDE_THREADS);
    // SAFETY: as above.
    Ok(unsafe { pass.device.launch(wide::chunk_state_wide, shape, &arguments) }?)
}

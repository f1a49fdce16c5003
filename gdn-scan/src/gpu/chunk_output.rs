//! The outputs: o = exp(G) Q S + (Q Kᵀ ∘ D) δ as one product, brought to their tokens.

use fermi_blas::gpu::{Gpu, Runtime, Shape};
use fermi_blas::{Backend, ViewMut};

use super::arguments;
use super::chunk::Pass;
use super::kernels::chunk_output as kernels;
use super::product::{entries, multiply};
use crate::Result;

const THREADS: u32 = 256;

/// Tokens of a block; see `kernels/chunk_output.cu`.
const ROWS: usize = 8;

pub(super) fn outputs<R: Runtime>(pass: &Pass<'_, R>, mut out: ViewMut<'_, Gpu<R>>) -> Result<()> {
    let (layout, parts, chunk) = (pass.layout, pass.parts, pass.layout.chunk);
    let (heads, value_width) = (layout.shape.value_heads(), layout.shape.value_width());
    let both = chunk + layout.shape.key_width();
    {
        let _span = pass.device.span("scan: chunk_output");
        let product = [
            entries(parts.mixed, both, chunk * both),
            entries(parts.corrections, value_width, both * value_width),
            // Nobody needs the values any more.
            entries(parts.values, value_width, chunk * value_width),
        ];
        // SAFETY: the parts of the scratch have these sizes and do not overlap.
        unsafe { multiply(pass.device, (chunk, both, value_width), layout.entries(), product) }?;
    }
    let _span = pass.device.span("scan: scatter");
    let (tokens, padded, stride) = (pass.tokens(), layout.chunks * chunk, out.row_stride());
    let arguments = arguments![parts.values, out.address(), tokens, heads, padded, value_width, stride];
    let shape = Shape::blocks(heads * tokens.div_ceil(ROWS), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and the outputs are exclusive.
    Ok(unsafe { pass.device.launch(kernels::chunk_scatter, shape, &arguments) }?)
}

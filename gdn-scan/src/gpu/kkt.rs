//! Token-token matrices: A = β (K Kᵀ ∘ D) below the diagonal, and Q Kᵀ ∘ D on and below it.

use fermi_blas::Backend;
use fermi_blas::gpu::{Runtime, Shape};

use super::arguments;
use super::chunk::Pass;
use super::kernels::kkt as kernels;
use super::product::{entries, multiply, transposed};
use crate::Result;

const THREADS: u32 = 256;

/// Rows of a block; see `kernels/kkt.cu`.
const ROWS: usize = 16;

pub(super) fn scores<R: Runtime>(pass: &Pass<'_, R>) -> Result<()> {
    let (layout, parts, batch) = (pass.layout, pass.parts, pass.layout.entries());
    let (chunk, key_width) = (layout.chunk, layout.shape.key_width());
    {
        let _span = pass.device.span("scan: kkt");
        // Keys stand above queries, so that one product serves both.
        let both = entries(parts.keys_queries, key_width, 2 * chunk * key_width);
        let scores = entries(parts.scores, chunk, 2 * chunk * chunk);
        // SAFETY: the parts of the scratch have these sizes and do not overlap.
        unsafe {
            multiply(pass.device, (2 * chunk, key_width, chunk), batch, [both, transposed(both), scores])
        }?;
    }
    let _span = pass.device.span("scan: decay");
    let arguments = arguments![parts.scores, parts.mixed, parts.factors, batch, chunk, key_width];
    let shape = Shape::blocks(batch * chunk.div_ceil(ROWS), THREADS);
    // SAFETY: the kernel's arguments; the scratch is exclusive.
    Ok(unsafe { pass.device.launch(kernels::chunk_decay, shape, &arguments) }?)
}

//! The two-part form of the corrections: U = (I + A)⁻¹ β V and W = (I + A)⁻¹ β exp(G) K.

use fermi_blas::Backend;
use fermi_blas::gpu::Runtime;

use super::chunk::Pass;
use super::product::{entries, multiply, transposed};
use crate::Result;

pub(super) fn representation<R: Runtime>(pass: &Pass<'_, R>) -> Result<()> {
    let _span = pass.device.span("scan: wy");
    let (layout, parts, batch) = (pass.layout, pass.parts, pass.layout.entries());
    let (chunk, key_width, value_width) =
        (layout.chunk, layout.shape.key_width(), layout.shape.value_width());
    let square = chunk * chunk;
    let u = [
        entries(parts.solved, chunk, square),
        entries(parts.values, value_width, chunk * value_width),
        entries(parts.corrections, value_width, (chunk + key_width) * value_width),
    ];
    // Transposed, as the state's kernels read it.
    let w = [
        transposed(entries(parts.keys_queries, key_width, 2 * chunk * key_width)),
        transposed(entries(parts.decayed, chunk, square)),
        entries(parts.w, chunk, chunk * key_width),
    ];
    // SAFETY: the parts of the scratch have these sizes and do not overlap.
    unsafe {
        multiply(pass.device, (chunk, chunk, value_width), batch, u)?;
        multiply(pass.device, (key_width, chunk, chunk), batch, w)
    }
}

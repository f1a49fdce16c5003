//! The inputs, copied chunk by chunk: keys and queries normalised and scaled, and each token's factors.

use fermi_blas::Backend;
use fermi_blas::gpu::{Runtime, Shape};

use super::arguments;
use super::chunk::Pass;
use super::kernels::chunk_gather as kernels;
use crate::Result;

const THREADS: u32 = 256;

/// Tokens of a block; see `kernels/chunk_gather.cu`.
const TOKENS: usize = 8;

pub(super) fn gather<R: Runtime>(pass: &Pass<'_, R>) -> Result<()> {
    let _span = pass.device.span("scan: gather");
    let (layout, parts) = (pass.layout, pass.parts);
    let heads = layout.shape.value_heads();
    let [(q, q_stride), (k, k_stride), (v, v_stride), (beta, beta_stride)] =
        [pass.inputs.q, pass.inputs.k, pass.inputs.v, pass.inputs.beta].map(Pass::input);
    let arguments = arguments![
        q,
        k,
        v,
        beta,
        parts.factors,
        parts.keys_queries,
        parts.mixed,
        parts.values,
        pass.tokens(),
        heads,
        heads / layout.shape.key_heads(),
        layout.chunks,
        layout.chunk,
        layout.shape.key_width(),
        layout.shape.value_width(),
        q_stride,
        k_stride,
        v_stride,
        beta_stride,
        pass.scale,
        u32::from(pass.l2_normalize.is_some()),
        pass.l2_normalize.unwrap_or_default()
    ];
    let shape = Shape::blocks(heads * (layout.chunks * layout.chunk).div_ceil(TOKENS), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and the scratch is exclusive.
    Ok(unsafe { pass.device.launch(kernels::chunk_gather, shape, &arguments) }?)
}

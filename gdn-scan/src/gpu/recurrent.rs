//! The scan token by token, in one launch: also decode's one step.

use fermi_blas::Backend;
use fermi_blas::gpu::{Gpu, Runtime, Shape};

use super::arguments;
use super::kernels::recurrent as kernels;
use crate::{Result, Scan, ScanInputs};

const THREADS: u32 = 256;

/// Value columns of a block, and key rows of a state that its threads keep; see `kernels/recurrent.cu`.
const COLUMNS: usize = 8;
const KEYS: usize = 128;

pub(super) fn recurrent_forward<R: Runtime>(device: &Gpu<R>, scan: Scan<'_, Gpu<R>>) -> Result<()> {
    let _span = device.span("scan: recurrent");
    let tokens = scan.tokens();
    let Scan { shape, inputs, mut state, mut out, scale, l2_normalize } = scan;
    let ScanInputs { q, k, v, g, beta } = inputs;
    let (heads, value_width) = (shape.value_heads(), shape.value_width());
    if tokens * heads * value_width == 0 {
        return Ok(());
    }
    let out_stride = out.row_stride();
    let arguments = arguments![
        q.address(),
        k.address(),
        v.address(),
        g.address(),
        beta.address(),
        state.address(),
        out.address(),
        tokens,
        heads,
        heads / shape.key_heads(),
        shape.key_width(),
        value_width,
        q.row_stride(),
        k.row_stride(),
        v.row_stride(),
        g.row_stride(),
        beta.row_stride(),
        out_stride,
        scale,
        u32::from(l2_normalize.is_some()),
        l2_normalize.unwrap_or_default()
    ];
    let wide = shape.key_width() != KEYS;
    let kernel = if wide { kernels::recurrent_wide } else { kernels::recurrent };
    let launch = Shape::blocks(heads * value_width.div_ceil(COLUMNS), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and the state and the outputs are exclusive.
    Ok(unsafe { device.launch(kernel, launch, &arguments) }?)
}

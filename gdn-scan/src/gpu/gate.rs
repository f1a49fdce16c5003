//! Decays and writing strengths, in one launch.

use fermi_blas::Backend;
use fermi_blas::gpu::{Gpu, Runtime, Shape};

use super::arguments;
use super::kernels::gate as kernels;
use crate::{Gates, Result};

const THREADS: u32 = 256;

pub(super) fn gates<R: Runtime>(device: &Gpu<R>, gates: Gates<'_, Gpu<R>>) -> Result<()> {
    let _span = device.span("scan: gates");
    gates.check()?;
    let Gates { a, b, a_log, dt_bias, mut g, mut beta } = gates;
    let (tokens, heads) = (a.rows(), a.columns());
    if tokens * heads == 0 {
        return Ok(());
    }
    let (a_stride, b_stride) = (a.row_stride(), b.row_stride());
    let (g_stride, beta_stride) = (g.row_stride(), beta.row_stride());
    let arguments = arguments![
        a.address(),
        b.address(),
        a_log.address(),
        dt_bias.address(),
        g.address(),
        beta.address(),
        tokens,
        heads,
        a_stride,
        b_stride,
        g_stride,
        beta_stride
    ];
    let shape = Shape::threads(tokens * heads, THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and the results are exclusive.
    Ok(unsafe { device.launch(kernels::scan_gates, shape, &arguments) }?)
}

//! Running sums of the decays' logarithms within each chunk.

use fermi_blas::Backend;
use fermi_blas::gpu::{Runtime, Shape};

use super::arguments;
use super::chunk::Pass;
use super::kernels::cumsum as kernels;
use crate::Result;

const THREADS: u32 = 64;

pub(super) fn sums<R: Runtime>(pass: &Pass<'_, R>) -> Result<()> {
    let _span = pass.device.span("scan: cumsum");
    let layout = pass.layout;
    let (g, stride) = Pass::input(pass.inputs.g);
    let (high, low, heads) = (pass.factor(0), pass.factor(1), layout.shape.value_heads());
    let arguments = arguments![g, high, low, pass.tokens(), heads, layout.chunks, layout.chunk, stride];
    let shape = Shape::threads(layout.entries(), THREADS);
    // SAFETY: the kernel's arguments; the sizes were checked, and the scratch is exclusive.
    Ok(unsafe { pass.device.launch(kernels::chunk_cumsum, shape, &arguments) }?)
}

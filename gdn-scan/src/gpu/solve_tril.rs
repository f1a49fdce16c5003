//! Forward substitution: (I + A)⁻¹ diag(β), and the same with its columns decayed from the chunk's start.

use fermi_blas::Backend;
use fermi_blas::gpu::{Runtime, Shape};

use super::arguments;
use super::chunk::Pass;
use super::kernels::solve_tril as kernels;
use crate::Result;

/// Tokens of a chunk that is solved in shared memory: a thread a column.
const MOST: usize = 64;
const WIDE_THREADS: u32 = 128;

pub(super) fn solve<R: Runtime>(pass: &Pass<'_, R>) -> Result<()> {
    let _span = pass.device.span("scan: solve_tril");
    let (parts, chunk, batch) = (pass.parts, pass.layout.chunk, pass.layout.entries());
    let (beta, from_start) = (pass.factor(2), pass.factor(3));
    let arguments = arguments![parts.scores, beta, from_start, parts.solved, parts.decayed, batch, chunk];
    let (kernel, shape) = if chunk <= MOST {
        (kernels::chunk_solve, Shape::blocks(batch, MOST as u32))
    } else {
        (kernels::chunk_solve_wide, Shape::threads(batch * chunk, WIDE_THREADS))
    };
    // SAFETY: the kernel's arguments; the scratch is exclusive.
    Ok(unsafe { pass.device.launch(kernel, shape, &arguments) }?)
}

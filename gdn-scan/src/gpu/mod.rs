//! The scan on a CUDA device, for every runtime at once.
//!
//! As on the processor every stage is a file named by its term; but here a stage is done for all heads and chunks before the
//! next one starts, since a card needs that many things to do. Only [`chunk_state`] goes from chunk to chunk.

mod chunk;
mod chunk_output;
mod chunk_state;
mod conv;
mod cumsum;
mod gate;
mod gather;
mod kernels;
mod kkt;
mod product;
mod recurrent;
mod scratch;
mod solve_tril;
mod wy;

use fermi_blas::ViewMut;
use fermi_blas::gpu::{Gpu, Runtime};

use crate::{CausalConv, Gates, Result, Scan, ScanBackend, ScanShape};

/// A kernel's arguments, each in the type that the kernel declares.
macro_rules! arguments {
    ($($value:expr),+ $(,)?) => { [$(fermi_blas::gpu::Argument::from($value)),+] };
}
use arguments;

impl<R: Runtime> ScanBackend for Gpu<R> {
    fn causal_conv(&self, conv: CausalConv<'_, Self>) -> Result<()> {
        conv::causal_conv(self, conv)
    }

    fn gates(&self, gates: Gates<'_, Self>) -> Result<()> {
        gate::gates(self, gates)
    }

    fn chunk_scratch_len(&self, shape: ScanShape, tokens: usize, chunk_len: usize) -> usize {
        scratch::Layout::new(shape, tokens, chunk_len).total()
    }

    fn chunk_forward(
        &self,
        scan: Scan<'_, Self>,
        chunk_len: usize,
        scratch: ViewMut<'_, Self>,
    ) -> Result<()> {
        chunk::chunk_forward(self, scan, chunk_len, scratch)
    }

    fn recurrent_forward(&self, scan: Scan<'_, Self>) -> Result<()> {
        recurrent::recurrent_forward(self, scan)
    }
}

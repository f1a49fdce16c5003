//! The scan on the processor: heads on several threads, each stage a kernel on slices.
//!
//! Every stage is a file named by its term in the literature. Stages run head by head, chunk by chunk, so that a chunk's
//! matrices stay in a core's own cache; their profile therefore adds up the time of all threads.

mod chunk;
mod chunk_output;
mod chunk_state;
mod conv;
mod cumsum;
mod exp;
mod gate;
mod head;
mod kkt;
mod l2norm;
mod matmul;
mod prefetch;
mod recurrent;
mod solve_tril;
mod transpose;
mod wy;

use fermi_blas::{Cpu, ViewMut};

use crate::{CausalConv, Gates, Result, Scan, ScanBackend, ScanShape};

impl ScanBackend for Cpu {
    fn causal_conv(&self, conv: CausalConv<'_, Self>) -> Result<()> {
        conv::causal_conv(self, conv)
    }

    fn gates(&self, gates: Gates<'_, Self>) -> Result<()> {
        gate::gates(self, gates)
    }

    fn chunk_scratch_len(&self, shape: ScanShape, tokens: usize, chunk_len: usize) -> usize {
        chunk::Layout::new(shape, tokens, chunk_len).total()
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

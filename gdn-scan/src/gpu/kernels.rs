//! The crate's own kernels.

use fermi_blas::gpu_module;

gpu_module!(pub(crate) causal_conv: "kernels/causal_conv.ptx" { causal_conv = 0 });
gpu_module!(pub(crate) gate: "kernels/gate.ptx" { scan_gates = 0 });
gpu_module!(pub(crate) recurrent: "kernels/recurrent.ptx" { recurrent = 0, recurrent_wide = 1 });
gpu_module!(pub(crate) cumsum: "kernels/cumsum.ptx" { chunk_cumsum = 0 });
gpu_module!(pub(crate) chunk_gather: "kernels/chunk_gather.ptx" { chunk_gather = 0 });
gpu_module!(pub(crate) kkt: "kernels/kkt.ptx" { chunk_decay = 0 });
gpu_module!(pub(crate) solve_tril: "kernels/solve_tril.ptx" { chunk_solve = 0, chunk_solve_wide = 1 });
gpu_module!(pub(crate) chunk_state: "kernels/chunk_state.ptx" { chunk_state = 0 });
gpu_module!(pub(crate) chunk_state_wide: "kernels/chunk_state_wide.ptx" { chunk_state_wide = 0 });
gpu_module!(pub(crate) chunk_output: "kernels/chunk_output.ptx" { chunk_scatter = 0 });

//! The crate's own kernels.

use crate::gpu_module;

gpu_module!(pub(crate) dequantize: "kernels/dequantize.ptx" { dequantize_q8 = 0, dequantize_bf16 = 1 });
gpu_module!(pub(crate) gather: "kernels/gather.ptx" { gather_f32 = 0, gather_bf16 = 1, gather_q8 = 2 });
gpu_module!(pub(crate) gemv: "kernels/gemv.ptx" { gemv_f32 = 0, gemv_bf16 = 1, gemv_q8 = 2, gemv_q8_few = 3 });
gpu_module!(pub(crate) norm: "kernels/norm.ptx" { layer_norm = 0, rms_norm = 1, gated_rms_norm = 2 });
gpu_module!(pub(crate) softmax: "kernels/softmax.ptx" { softmax_held = 0, softmax_kept = 1, softmax_long = 2 });
gpu_module!(pub(crate) rotary: "kernels/rotary.ptx" { rotary = 0 });
gpu_module!(pub(crate) elementwise: "kernels/elementwise.ptx" { add = 0, activate = 1, gate = 2 });
gpu_module!(pub(crate) argmax: "kernels/argmax.ptx" { argmax = 0 });
gpu_module!(pub(crate) batch: "kernels/batch.ptx" { batch_pointers = 0, sum_parts = 1 });

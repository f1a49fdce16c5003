//! The causal convolution, its state included, in one launch.

use fermi_blas::gpu::{Gpu, Runtime, Shape};
use fermi_blas::{Activation, Backend};

use super::arguments;
use super::kernels::causal_conv as kernels;
use crate::{CausalConv, Result};

const THREADS: u32 = 256;

/// Tokens of one thread at least; see `kernels/causal_conv.cu`.
const SEGMENT: usize = 16;

/// The number that the kernel knows a function by.
fn number(activation: Option<Activation>) -> u32 {
    match activation {
        Some(Activation::Silu) => 0,
        Some(Activation::Sigmoid) => 1,
        Some(Activation::GeluTanh) => 2,
        Some(Activation::GeluErf) => 3,
        None => 4,
    }
}

pub(super) fn causal_conv<R: Runtime>(device: &Gpu<R>, conv: CausalConv<'_, Gpu<R>>) -> Result<()> {
    let _span = device.span("scan: causal_conv");
    let CausalConv { x, weight, mut state, mut out, activation } = conv;
    let (taps, tokens, channels) = (weight.rows(), x.rows(), x.columns());
    if tokens * channels == 0 {
        return Ok(());
    }
    let shape = Shape::threads(tokens.div_ceil(taps.max(SEGMENT)) * channels, THREADS);
    let out_stride = out.row_stride();
    let (x_stride, weight_stride) = (x.row_stride(), weight.row_stride());
    let (x, weight, state, out) = (x.address(), weight.address(), state.address(), out.address());
    let arguments = arguments![
        x,
        weight,
        state,
        out,
        tokens,
        channels,
        taps,
        x_stride,
        weight_stride,
        out_stride,
        number(activation)
    ];
    // SAFETY: the kernel's arguments; the sizes were checked, and the state and the outputs are exclusive.
    Ok(unsafe { device.launch(kernels::causal_conv, shape, &arguments) }?)
}

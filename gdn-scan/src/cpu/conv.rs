//! The causal convolution: y_t = f(Σ_j weight_j · x_(t − K + 1 + j)).

use fermi_blas::{Activation, Backend, Cpu, RowOps};
use pulp::{Arch, Simd, WithSimd};

use super::exp::exp;
use crate::{CausalConv, Result};

/// Channels that are taken through all taps while they are in the first-level cache.
const BLOCK: usize = 1024;

pub(super) fn causal_conv(device: &Cpu, conv: CausalConv<'_, Cpu>) -> Result<()> {
    let _span = device.span("scan: causal_conv");
    let CausalConv { x, weight, state, mut out, activation } = conv;
    let (taps, tokens, arch) = (weight.rows(), x.rows(), Arch::new());
    let silu = activation == Some(Activation::Silu);
    let past = state.as_view();
    device.for_each_row(out.reborrow(), |token, out| {
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let columns = block * BLOCK..block * BLOCK + out.len();
            for tap in 0..taps {
                // The state's rows stand in front of the inputs.
                let input = match (token + tap).checked_sub(taps - 1) {
                    Some(index) => x.row(index),
                    None => past.row(token + tap),
                };
                let (weight, input) = (&weight.row(tap)[columns.clone()], &input[columns.clone()]);
                let place = (tap == 0, silu && tap + 1 == taps);
                arch.dispatch(Tap { weight, input, out: &mut *out, place });
            }
        }
    });
    if let Some(activation) = activation.filter(|_| !silu) {
        device.activate_in_place(activation, out)?;
    }
    let kept = (taps - 1).saturating_sub(tokens);
    let columns = x.columns();
    let mut state = state.reshape(1, (taps - 1) * columns)?;
    if taps > 1 && columns > 0 {
        let state = state.row_mut(0);
        state.copy_within((taps - 1 - kept) * columns.., 0);
        for (row, index) in state[kept * columns..].chunks_mut(columns).zip(tokens + kept + 1 - taps..) {
            row.copy_from_slice(x.row(index));
        }
    }
    Ok(())
}

/// One tap's part of one token's outputs.
struct Tap<'a> {
    weight: &'a [f32],
    input: &'a [f32],
    out: &'a mut [f32],
    /// Whether this is the first tap, and whether SiLU follows it.
    place: (bool, bool),
}

impl WithSimd for Tap<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let values = self.out.iter_mut().zip(self.weight).zip(self.input);
        match self.place {
            (true, false) => values.for_each(|((y, w), x)| *y = w * x),
            (false, false) => values.for_each(|((y, w), x)| *y += w * x),
            (true, true) => values.for_each(|((y, w), x)| *y = silu(w * x)),
            (false, true) => values.for_each(|((y, w), x)| *y = silu(*y + w * x)),
        }
    }
}

#[inline(always)]
fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

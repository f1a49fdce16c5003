//! The scan token by token: S ← exp(g) S, δ = β (v − Sᵀ k), S ← S + k δᵀ, o = Sᵀ q.
//!
//! For each token a head's state is walked through twice, a block of columns at a time: once to read what it predicts for
//! the key, once to decay it, write the correction and read the output.

use fermi_blas::{Backend, Cpu};
use pulp::{Arch, Simd, WithSimd};

use super::head::{Head, Heads};
use super::l2norm::l2_factor;
use crate::{Result, Scan};

pub(super) fn recurrent_forward(device: &Cpu, scan: Scan<'_, Cpu>) -> Result<()> {
    let _span = device.span("scan: recurrent");
    let heads = Heads::new(&scan);
    let (shape, tokens) = (heads.shape, heads.tokens());
    let count = shape.value_heads();
    if tokens == 0 || count == 0 || shape.value_width() == 0 {
        return Ok(());
    }
    let state = scan.state.reshape(count, shape.key_width() * shape.value_width())?.share_rows();
    let out = scan.out.heads(count)?.share_rows();
    let elements = tokens.saturating_mul(shape.state_len().max(count * shape.value_width()));
    let arch = Arch::new();
    device.for_each(count, elements, |index| {
        let head = heads.head(index);
        // SAFETY: every head is visited once, and takes its own row of the state.
        let state = unsafe { state.row_mut(0, index) };
        for token in 0..tokens {
            // SAFETY: every (head, token) is visited once.
            let out = unsafe { out.row_mut(index, token) };
            arch.dispatch(Step::new(&head, token, state, out));
        }
    });
    Ok(())
}

/// One token of one head.
struct Step<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    q_factor: f32,
    k_factor: f32,
    decay: f32,
    beta: f32,
    state: &'a mut [f32],
    out: &'a mut [f32],
}

impl<'a> Step<'a> {
    fn new(head: &Head<'a>, token: usize, state: &'a mut [f32], out: &'a mut [f32]) -> Self {
        let (q, k) = (head.q(token), head.k(token));
        Self {
            q,
            k,
            v: head.v(token),
            q_factor: l2_factor(q, head.l2_normalize) * head.scale,
            k_factor: l2_factor(k, head.l2_normalize),
            decay: head.g(token).exp(),
            beta: head.beta(token),
            state,
            out,
        }
    }

    /// `VECTORS` vectors of columns from `column` on; of the last one perhaps only some lanes.
    #[inline(always)]
    fn columns<S: Simd, const VECTORS: usize>(&mut self, simd: S, column: usize, width: usize) {
        let stride = self.out.len();
        let decay = simd.splat_f32s(self.decay);
        let mut predicted = [simd.splat_f32s(0.0); VECTORS];
        for (row, k) in self.state.chunks_exact(stride).zip(self.k) {
            let k = simd.splat_f32s(k * self.k_factor);
            let row: [S::f32s; VECTORS] = load(simd, &row[column..][..width]);
            for (predicted, row) in predicted.iter_mut().zip(row) {
                *predicted = simd.mul_add_e_f32s(k, row, *predicted);
            }
        }
        let beta = simd.splat_f32s(self.beta);
        let v: [S::f32s; VECTORS] = load(simd, &self.v[column..][..width]);
        let correction: [S::f32s; VECTORS] = std::array::from_fn(|i| {
            simd.mul_f32s(beta, simd.sub_f32s(v[i], simd.mul_f32s(decay, predicted[i])))
        });
        let mut out = [simd.splat_f32s(0.0); VECTORS];
        for ((row, k), q) in self.state.chunks_exact_mut(stride).zip(self.k).zip(self.q) {
            let (k, q) = (simd.splat_f32s(k * self.k_factor), simd.splat_f32s(q * self.q_factor));
            let row = &mut row[column..][..width];
            let mut values: [S::f32s; VECTORS] = load(simd, row);
            for i in 0..VECTORS {
                values[i] = simd.mul_add_e_f32s(k, correction[i], simd.mul_f32s(decay, values[i]));
                out[i] = simd.mul_add_e_f32s(q, values[i], out[i]);
            }
            store(simd, row, values);
        }
        store(simd, &mut self.out[column..][..width], out);
    }
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (columns, lanes) = (self.out.len(), S::F32_LANES);
        let mut column = 0;
        while S::REGISTER_COUNT >= 32 && column + 8 * lanes <= columns {
            self.columns::<S, 8>(simd, column, 8 * lanes);
            column += 8 * lanes;
        }
        while column + 4 * lanes <= columns {
            self.columns::<S, 4>(simd, column, 4 * lanes);
            column += 4 * lanes;
        }
        while column < columns {
            let width = lanes.min(columns - column);
            self.columns::<S, 1>(simd, column, width);
            column += width;
        }
    }
}

#[inline(always)]
fn load<S: Simd, const VECTORS: usize>(simd: S, values: &[f32]) -> [S::f32s; VECTORS] {
    let (whole, rest) = S::as_simd_f32s(values);
    std::array::from_fn(|i| whole.get(i).copied().unwrap_or_else(|| simd.partial_load_f32s(rest)))
}

#[inline(always)]
fn store<S: Simd, const VECTORS: usize>(simd: S, to: &mut [f32], values: [S::f32s; VECTORS]) {
    let (whole, rest) = S::as_mut_simd_f32s(to);
    for (i, value) in values.into_iter().enumerate() {
        match whole.get_mut(i) {
            Some(to) => *to = value,
            None => simd.partial_store_f32s(rest, value),
        }
    }
}

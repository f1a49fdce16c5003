//! A chunk's outputs: o = exp(G) Q S + (Q Kᵀ ∘ D) δ.

use super::chunk::Chunk;
use super::matmul::{LANES, Product, Rows, ScaleRows, padded};

/// Turns Q S in `reads` into the outputs; needs δ.
pub(super) fn attend(chunk: &mut Chunk<'_>) {
    let count = chunk.count;
    let (stride, value_stride) = (chunk.layout.chunk_stride, chunk.layout.value_stride);
    let (corrections, outputs) = chunk.reads.split_at_mut(count * value_stride);
    let factors = &chunk.decays.from_start[..count];
    chunk.arch.dispatch(ScaleRows { values: outputs, stride: value_stride, factors });
    for first in (0..count).step_by(LANES) {
        let last = count.min(first + LANES);
        Product {
            size: (last - first, last, padded(chunk.layout.shape.value_width())),
            a: Rows { values: &chunk.scores[(count + first) * stride..], stride },
            a_transposed: false,
            b: Rows { values: corrections, stride: value_stride },
            c: &mut outputs[first * value_stride..],
            c_stride: value_stride,
            alpha: 1.0,
            beta: 1.0,
        }
        .run(chunk.arch);
    }
}

/// Copies the output of the chunk's token `i`.
pub(super) fn store(chunk: &Chunk<'_>, i: usize, out: &mut [f32]) {
    out.copy_from_slice(&chunk.reads[(chunk.count + i) * chunk.layout.value_stride..][..out.len()]);
}

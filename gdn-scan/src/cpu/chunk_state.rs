//! The state behind a chunk: S ← exp(G_last) S + (exp(G_last − G) K)ᵀ δ.

use super::chunk::Chunk;
use super::matmul::{Product, Rows, ScaleRows, padded};

/// Takes a head's state into the scratch.
pub(super) fn load(chunk: &mut Chunk<'_>, state: &[f32]) {
    let width = chunk.layout.shape.value_width();
    for (row, state) in chunk.state.chunks_mut(chunk.layout.value_stride).zip(state.chunks(width)) {
        row[..width].copy_from_slice(state);
    }
}

/// Gives the state back.
pub(super) fn store(chunk: &Chunk<'_>, state: &mut [f32]) {
    let width = chunk.layout.shape.value_width();
    for (row, state) in chunk.state.chunks(chunk.layout.value_stride).zip(state.chunks_mut(width)) {
        state.copy_from_slice(&row[..width]);
    }
}

/// Moves the state over the chunk; decays δ on the way, which is not needed any more.
pub(super) fn update(chunk: &mut Chunk<'_>) {
    let (count, value_stride) = (chunk.count, chunk.layout.value_stride);
    let corrections = &mut chunk.reads[..count * value_stride];
    let factors = &chunk.decays.to_end[..count];
    chunk.arch.dispatch(ScaleRows { values: corrections, stride: value_stride, factors });
    Product {
        size: (chunk.layout.shape.key_width(), count, padded(chunk.layout.shape.value_width())),
        a: Rows { values: chunk.keys_queries, stride: chunk.layout.key_stride },
        a_transposed: true,
        b: Rows { values: corrections, stride: value_stride },
        c: chunk.state,
        c_stride: value_stride,
        alpha: 1.0,
        beta: chunk.decays.whole(count),
    }
    .run(chunk.arch);
}

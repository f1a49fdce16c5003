//! Right-hand sides of a chunk's corrections: R = β (v − exp(G) K S).

use super::chunk::Chunk;

/// Turns K S in `reads` into R.
pub(super) fn right_hand_sides<'v>(
    chunk: &mut Chunk<'_>,
    v: impl Fn(usize) -> &'v [f32],
    beta: impl Fn(usize) -> f32,
) {
    for (i, row) in chunk.reads.chunks_mut(chunk.layout.value_stride).take(chunk.count).enumerate() {
        let (beta, decay) = (beta(i), chunk.decays.from_start[i]);
        for (row, v) in row.iter_mut().zip(v(i)) {
            *row = beta * (v - decay * *row);
        }
    }
}

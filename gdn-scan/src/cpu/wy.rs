//! Right-hand sides of a chunk's corrections: R = β (v − exp(G) K S).

use pulp::{Simd, WithSimd};

use super::chunk::Chunk;

/// Turns K S in `reads` into R.
pub(super) fn right_hand_sides<'v>(
    chunk: &mut Chunk<'_>,
    v: impl Fn(usize) -> &'v [f32],
    beta: impl Fn(usize) -> f32,
) {
    for (i, row) in chunk.reads.chunks_mut(chunk.layout.value_stride).take(chunk.count).enumerate() {
        let (beta, decay) = (beta(i), chunk.decays.from_start[i]);
        chunk.arch.dispatch(RightHandSide { row, v: v(i), beta, decay });
    }
}

/// row = beta (v − decay · row)
struct RightHandSide<'a> {
    row: &'a mut [f32],
    v: &'a [f32],
    beta: f32,
    decay: f32,
}

impl WithSimd for RightHandSide<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (x, v) in self.row.iter_mut().zip(self.v) {
            *x = self.beta * (v - self.decay * *x);
        }
    }
}

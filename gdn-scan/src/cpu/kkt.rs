//! Token-token matrices of a chunk: A = β (K Kᵀ ∘ D) below the diagonal, and Q Kᵀ ∘ D on and below it.
//!
//! D_ij = exp(G_i − G_j). Only differences with i ≥ j are formed, which are at most 0 for decays: nothing overflows,
//! however strong they are.

use pulp::{Simd, WithSimd};

use super::chunk::Chunk;
use super::exp::exp;
use super::matmul::{LANES, Product, Rows, padded};

/// Fills `scores`. Above the diagonal A is left undefined; Q Kᵀ ∘ D is 0 there up to the end of the row's
/// block of [`LANES`] tokens.
pub(super) fn scores(chunk: &mut Chunk<'_>, beta: impl Fn(usize) -> f32) {
    let (count, stride) = (chunk.count, chunk.layout.chunk_stride);
    for half in 0..2 {
        for first in (0..count).step_by(LANES) {
            let last = count.min(first + LANES);
            let row = half * count + first;
            Product {
                size: (last - first, chunk.layout.shape.key_width(), padded(last)),
                a: Rows {
                    values: &chunk.keys_queries[row * chunk.layout.key_stride..],
                    stride: chunk.layout.key_stride,
                },
                a_transposed: false,
                b: Rows { values: chunk.keys_t, stride },
                c: &mut chunk.scores[row * stride..],
                c_stride: stride,
                alpha: 1.0,
                beta: 0.0,
            }
            .run(chunk.arch);
        }
    }
    let (keys, queries) = chunk.scores.split_at_mut(count * stride);
    for i in 0..count {
        let queries = &mut queries[i * stride..][..count];
        let (high, low) = (chunk.decays.high[i], chunk.decays.low[i]);
        // Products with this row end at its block's last token.
        queries[i + 1..count.min((i + 1).next_multiple_of(LANES))].fill(0.0);
        chunk.arch.dispatch(Decay {
            sum: (high, low),
            sums: (&chunk.decays.high[..i], &chunk.decays.low[..i]),
            beta: beta(i),
            keys: &mut keys[i * stride..][..i],
            queries: &mut queries[..i],
        });
    }
}

/// One row of both matrices, left of the diagonal.
struct Decay<'a> {
    sum: (f32, f32),
    sums: (&'a [f32], &'a [f32]),
    beta: f32,
    keys: &'a mut [f32],
    queries: &'a mut [f32],
}

impl WithSimd for Decay<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let ((high, low), (highs, lows)) = (self.sum, self.sums);
        for (((key, query), j_high), j_low) in
            self.keys.iter_mut().zip(self.queries.iter_mut()).zip(highs).zip(lows)
        {
            let decay = exp((high - j_high) + (low - j_low));
            *key *= self.beta * decay;
            *query *= decay;
        }
    }
}

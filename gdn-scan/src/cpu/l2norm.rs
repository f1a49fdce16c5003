//! Normalisation of queries and keys: x / √(Σx² + eps).

use pulp::{Simd, WithSimd};

/// Partial sums that the compiler keeps in vector registers.
const LANES: usize = 16;

/// What a query or key is multiplied by.
#[inline(always)]
pub(super) fn l2_factor(x: &[f32], eps: Option<f32>) -> f32 {
    let Some(eps) = eps else { return 1.0 };
    let mut sums = [0.0; LANES];
    let pieces = x.chunks_exact(LANES);
    let rest: f32 = pieces.remainder().iter().map(|x| x * x).sum();
    for piece in pieces {
        for (sum, x) in sums.iter_mut().zip(piece) {
            *sum += x * x;
        }
    }
    1.0 / (sums.iter().sum::<f32>() + rest + eps).sqrt()
}

/// Copies a query or key, normalised and scaled.
pub(super) struct Normalized<'a> {
    pub(super) from: &'a [f32],
    pub(super) scale: f32,
    pub(super) eps: Option<f32>,
    pub(super) to: &'a mut [f32],
}

impl WithSimd for Normalized<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let factor = l2_factor(self.from, self.eps) * self.scale;
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = from * factor;
        }
    }
}

//! Normalisation of queries and keys: x / √(Σx² + eps).

/// Partial sums that the compiler keeps in vector registers.
const LANES: usize = 16;

/// What a query or key is multiplied by.
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

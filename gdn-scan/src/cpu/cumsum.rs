//! Running sums of the decays' logarithms within a chunk.
//!
//! G_i = g_0 + ... + g_i is summed in float64. A difference of two sums, G_i − G_j, is what the chunk's matrices need, and
//! float32 sums would lose it after one strong decay (at −10⁴ the next float32 is 0.001 away); so each sum is kept as a
//! float32 and the float32 rest of it, whose differences are exact enough.

/// Under this, exp is 0 in float32 and in float64; it keeps sums finite when a decay is −∞.
const STRONGEST: f32 = -1000.0;

/// The sums of one chunk, and what follows from them for each token alone.
pub(super) struct Decays<'a> {
    /// G_i rounded to float32.
    pub(super) high: &'a mut [f32],
    /// What the rounding left over.
    pub(super) low: &'a mut [f32],
    /// exp(G_i): the decay from the chunk's start to token i.
    pub(super) from_start: &'a mut [f32],
    /// exp(G_last − G_i): the decay from token i to the chunk's end.
    pub(super) to_end: &'a mut [f32],
}

impl Decays<'_> {
    /// Sums g of `count` tokens.
    pub(super) fn fill(&mut self, count: usize, g: impl Fn(usize) -> f32) {
        let g = |index| {
            let g = g(index);
            f64::from(if g < STRONGEST { STRONGEST } else { g })
        };
        let mut sum = 0.0;
        for i in 0..count {
            sum += g(i);
            self.high[i] = sum as f32;
            self.low[i] = (sum - f64::from(self.high[i])) as f32;
            self.from_start[i] = sum.exp() as f32;
        }
        let mut rest = 0.0_f64;
        for i in (0..count).rev() {
            self.to_end[i] = rest.exp() as f32;
            rest += g(i);
        }
    }

    /// The decay over the whole chunk.
    pub(super) fn whole(&self, count: usize) -> f32 {
        count.checked_sub(1).map_or(1.0, |last| self.from_start[last])
    }
}

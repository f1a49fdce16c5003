//! From logits to the next token.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::{Error, Result};

/// How a token is chosen. The default is greedy: the first largest logit.
///
/// Applied in the reference's order: repetition penalty, temperature, top-k, top-p, min-p, draw.
///
/// # Source
/// `generation/logits_process.py` of transformers 5.24.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 0 chooses the first largest.
    pub temperature: f64,
    /// Only the so many largest logits, and those equal to the least of them, may be drawn; 0 for no limit.
    pub top_k: usize,
    /// The least likely tokens are dropped as long as all dropped together have at most 1 − `top_p`; 1 drops none, 0 all
    /// but the likeliest.
    pub top_p: f64,
    /// Tokens less likely than this part of the likeliest are dropped; 0 drops none.
    pub min_p: f64,
    /// Logits of ids that already occurred are divided by it if positive, multiplied if negative; 1 changes none.
    pub repetition_penalty: f64,
    /// The same seed draws the same tokens from the same logits.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 }
    }
}

impl Sampling {
    fn check(&self) -> Result<()> {
        let checks = [
            ("temperature", self.temperature, self.temperature >= 0.0, "0 or more, and finite"),
            ("top_p", self.top_p, (0.0..=1.0).contains(&self.top_p), "in 0 ..= 1"),
            ("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "in 0 ..= 1"),
            (
                "repetition_penalty",
                self.repetition_penalty,
                self.repetition_penalty > 0.0,
                "above 0, and finite",
            ),
        ];
        for (parameter, value, holds, expected) in checks {
            if !holds || !value.is_finite() {
                return Err(Error::SamplingParameter { parameter, value, expected });
            }
        }
        Ok(())
    }
}

/// A token that may be drawn.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: u32,
    logit: f32,
    /// Its probability relative to the likeliest token's.
    weight: f64,
}

impl Candidate {
    /// Likelier tokens first, then lower ids.
    fn order(&self, other: &Self) -> Ordering {
        other.logit.total_cmp(&self.logit).then(self.id.cmp(&other.id))
    }
}

/// Chooses tokens one after the other. It allocates when it is made, for a vocabulary, and not afterwards.
#[derive(Debug)]
pub struct Sampler {
    sampling: Sampling,
    rng: ChaCha8Rng,
    logits: Vec<f32>,
    repeated: Vec<bool>,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler over `vocab_size` ids.
    ///
    /// # Errors
    /// [`Error::SamplingParameter`] names the parameter that is out of its bounds.
    pub fn new(sampling: &Sampling, vocab_size: usize) -> Result<Self> {
        sampling.check()?;
        Ok(Self {
            sampling: sampling.clone(),
            rng: ChaCha8Rng::seed_from_u64(sampling.seed),
            logits: vec![0.0; vocab_size],
            repeated: vec![false; vocab_size],
            candidates: Vec::with_capacity(vocab_size),
        })
    }

    /// What it was made with.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Whether the choice is the first largest logit as it stands, whatever came before.
    pub fn is_greedy(&self) -> bool {
        self.sampling.temperature == 0.0 && self.sampling.repetition_penalty == 1.0
    }

    /// The next token, by the logits after `history` (prompt and answer so far; it matters to the repetition penalty only).
    ///
    /// # Errors
    /// [`Error::LogitNan`], [`Error::NoChoice`] when no logit is above minus infinity, [`Error::LogitCount`].
    pub fn choose(&mut self, logits: &[f32], history: &[u32]) -> Result<u32> {
        if logits.len() != self.logits.len() {
            return Err(Error::LogitCount { expected: self.logits.len(), actual: logits.len() });
        }
        self.logits.copy_from_slice(logits);
        self.choose_own(history)
    }

    /// Room for the logits that [`Sampler::choose_own`] reads.
    pub(crate) fn logits_mut(&mut self) -> &mut [f32] {
        &mut self.logits
    }

    pub(crate) fn choose_own(&mut self, history: &[u32]) -> Result<u32> {
        if self.logits.iter().any(|logit| logit.is_nan()) {
            return Err(Error::LogitNan);
        }
        self.penalize(history);
        let (best, largest) = first_largest(&self.logits).ok_or(Error::NoChoice)?;
        if self.sampling.temperature == 0.0 || self.sampling.top_p == 0.0 || largest == f32::INFINITY {
            return Ok(best);
        }
        self.collect(largest);
        self.keep_top_k();
        self.keep_top_p();
        self.candidates.retain(|candidate| candidate.weight >= self.sampling.min_p);
        Ok(self.draw().unwrap_or(best))
    }

    fn penalize(&mut self, history: &[u32]) {
        let penalty = self.sampling.repetition_penalty as f32;
        if penalty == 1.0 {
            return;
        }
        self.repeated.fill(false);
        for id in history {
            let Some(repeated) = self.repeated.get_mut(*id as usize) else { continue };
            if !std::mem::replace(repeated, true) {
                let logit = &mut self.logits[*id as usize];
                *logit = if *logit < 0.0 { *logit * penalty } else { *logit / penalty };
            }
        }
    }

    /// All tokens with their relative probabilities.
    fn collect(&mut self, largest: f32) {
        let temperature = self.sampling.temperature;
        let candidates = self.logits.iter().zip(0..).map(|(&logit, id)| {
            let weight = ((f64::from(logit) - f64::from(largest)) / temperature).exp();
            Candidate { id, logit, weight }
        });
        self.candidates.clear();
        self.candidates.extend(candidates);
    }

    fn keep_top_k(&mut self) {
        let k = self.sampling.top_k;
        if k == 0 || k >= self.candidates.len() {
            return;
        }
        let (_, least, _) = self.candidates.select_nth_unstable_by(k - 1, Candidate::order);
        let least = least.logit;
        self.candidates.retain(|candidate| candidate.logit >= least);
    }

    fn keep_top_p(&mut self) {
        let top_p = self.sampling.top_p;
        if top_p == 1.0 {
            return;
        }
        let total: f64 = self.candidates.iter().map(|candidate| candidate.weight).sum();
        let (may_go, count) = ((1.0 - top_p) * total, self.candidates.len() as f64);
        // Tokens this unlikely go even if all are: only the others need sorting.
        let mut gone = 0.0;
        self.candidates.retain(|candidate| {
            let stays = candidate.weight * count > may_go;
            gone += if stays { 0.0 } else { candidate.weight };
            stays
        });
        self.candidates.sort_unstable_by(Candidate::order);
        let unlikely = self.candidates.iter().rev().take_while(|candidate| {
            gone += candidate.weight;
            gone <= may_go
        });
        let keep = self.candidates.len() - unlikely.count();
        self.candidates.truncate(keep.max(1));
    }

    fn draw(&mut self) -> Option<u32> {
        let total: f64 = self.candidates.iter().map(|candidate| candidate.weight).sum();
        // 53 bits: every float64 in [0, 1) that is a multiple of 2^-53 is equally likely.
        let mut rest = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
        let drawable = || self.candidates.iter().filter(|candidate| candidate.weight > 0.0);
        let drawn = drawable().find(|candidate| {
            rest -= candidate.weight;
            rest < 0.0
        });
        // Rounding may leave a rest behind the last one.
        drawn.or(drawable().next_back()).map(|candidate| candidate.id)
    }
}

/// The first of the largest logits, unless none is above minus infinity.
fn first_largest(logits: &[f32]) -> Option<(u32, f32)> {
    let mut best = (0, f32::NEG_INFINITY);
    for (&logit, id) in logits.iter().zip(0..) {
        if logit > best.1 {
            best = (id, logit);
        }
    }
    (best.1 > f32::NEG_INFINITY).then_some(best)
}

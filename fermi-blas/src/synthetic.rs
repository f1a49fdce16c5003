//! Random weights that Python and Rust make bit for bit.
//!
//! Each value is a pure function of (tensor name, seed, flat index), so that a test's golden file holds outputs only and
//! a random checkpoint of any size can be made anywhere. The Python twin is `reference/synthetic.py`.

use rayon::prelude::*;

/// 2^64 divided by the golden ratio, odd: the step of splitmix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Values that one thread makes at a time.
const PIECE: usize = 1 << 16;

/// The 64-bit FNV-1a hash.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

/// The finaliser of splitmix64.
#[inline]
pub fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The random integers of one tensor name under one seed.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    base: u64,
}

impl Sequence {
    /// The sequence of `name` under `seed`.
    pub fn new(name: &str, seed: u64) -> Self {
        Self { base: mix(fnv1a64(name.as_bytes()) ^ seed.wrapping_mul(GOLDEN)) }
    }

    /// The integer at `index`, uniform in 0 .. 2^24.
    #[inline]
    pub fn raw(self, index: u64) -> u32 {
        let step = index.wrapping_add(1).wrapping_mul(GOLDEN);
        (mix(self.base.wrapping_add(step)) >> 40) as u32
    }

    /// Fills `values` with those from index `start` on: `center + scale · (u / 2^23 − 1)`, computed in float64 and
    /// rounded once. Several threads share a long slice.
    pub fn fill(self, distribution: Distribution, start: usize, values: &mut [f32]) {
        let Distribution { center, scale } = distribution;
        let fill = |piece: usize, values: &mut [f32]| {
            let start = (start + piece * PIECE) as u64;
            for (index, value) in values.iter_mut().enumerate() {
                let unit = f64::from(self.raw(start + index as u64)) / 8_388_608.0 - 1.0;
                *value = (center + scale * unit) as f32;
            }
        };
        if values.len() <= PIECE {
            fill(0, values);
        } else {
            values.par_chunks_mut(PIECE).enumerate().for_each(|(piece, values)| fill(piece, values));
        }
    }
}

/// Values uniform in [center − scale, center + scale).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// The middle.
    pub center: f64,
    /// Half the width.
    pub scale: f64,
}

impl Distribution {
    /// What a weight of this name and shape is drawn from, so that a random model's activations stay of order one: the
    /// first rule that fits the name.
    pub fn of_weight(name: &str, shape: &[usize]) -> Self {
        let last = shape.last().copied().unwrap_or(1) as f64;
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
        let (center, scale) = if ends(&["A_log"]) {
            (1.0, 1.0)
        } else if ends(&["dt_bias"]) {
            (-3.0, 1.5)
        } else if ends(&["conv1d.weight"]) {
            (0.0, (3.0 / last).sqrt())
        } else if ends(&["position_embedding.weight"]) {
            (0.0, 0.5)
        } else if ends(&["embed_tokens.weight", "lm_head.weight"]) {
            (0.0, 2.0 * (3.0 / last).sqrt())
        } else if ends(&[".bias"]) {
            (0.0, 0.1)
        } else if shape.len() == 1 {
            let centred_at_one = ["linear_attn.norm.weight", "layer_norm", "post_layernorm", "pre_norm"];
            (if centred_at_one.iter().any(|part| name.contains(part)) { 1.0 } else { 0.0 }, 0.2)
        } else {
            (0.0, (3.0 / shape.iter().skip(1).product::<usize>() as f64).sqrt())
        };
        Self { center, scale }
    }
}

/// `count` values of `name`.
pub fn values(name: &str, count: usize, seed: u64, distribution: Distribution) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Sequence::new(name, seed).fill(distribution, 0, &mut values);
    values
}

/// A weight by its name, drawn from [`Distribution::of_weight`], before any rounding to a narrower type.
pub fn weight(name: &str, shape: &[usize], seed: u64) -> Vec<f32> {
    values(name, shape.iter().product(), seed, Distribution::of_weight(name, shape))
}

/// `count` token ids below `below`; none when `below` is 0.
pub fn token_ids(name: &str, count: usize, seed: u64, below: u32) -> Vec<u32> {
    let sequence = Sequence::new(name, seed);
    (0..count as u64).map_while(|index| sequence.raw(index).checked_rem(below)).collect()
}

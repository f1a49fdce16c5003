//! What a model will hold, before it is loaded.

use std::iter::Sum;
use std::ops::Add;

/// Bytes of device memory that a model allocates at load, computed from its config alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Weights and constant tables.
    pub weights: usize,
    /// State of sequences: keys and values, convolution inputs, recurrent states.
    pub caches: usize,
    /// Activations and scratch of a pass.
    pub scratch: usize,
}

impl MemoryPlan {
    /// All bytes together.
    pub fn total(&self) -> usize {
        self.weights + self.caches + self.scratch
    }
}

impl Add for MemoryPlan {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            weights: self.weights + other.weights,
            caches: self.caches + other.caches,
            scratch: self.scratch + other.scratch,
        }
    }
}

impl Sum for MemoryPlan {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

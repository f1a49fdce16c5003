//! Inputs that are the same on every run and machine.

use crate::synthetic::{self, Distribution};

/// `count` values uniform in [-1, 1), a pure function of `name`.
pub fn uniform(name: &str, count: usize) -> Vec<f32> {
    synthetic::values(name, count, 1, Distribution { center: 0.0, scale: 1.0 })
}

/// `count` ids below `below`, a pure function of `name`.
pub fn uniform_ids(name: &str, count: usize, below: u32) -> Vec<u32> {
    synthetic::token_ids(name, count, 1, below)
}

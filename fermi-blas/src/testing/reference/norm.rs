//! Norms in float64.

use super::naive_activation;
use crate::Activation;

/// (x − mean) / √(variance + eps) · weight + bias for every row of `weight.len()` values.
pub fn naive_layer_norm(x: &[f32], weight: &[f32], bias: &[f32], eps: f64) -> Vec<f64> {
    rows(x, weight.len(), |row| {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
        let root = (variance + eps).sqrt();
        let normed = row.iter().map(|x| (x - mean) / root);
        normed.zip(weight).zip(bias).map(|((x, w), b)| x * f64::from(*w) + f64::from(*b)).collect()
    })
}

/// x / √(mean(x²) + eps) · (1 + weight) for every row of `weight.len()` values.
pub fn naive_rms_norm(x: &[f32], weight: &[f32], eps: f64) -> Vec<f64> {
    rows(x, weight.len(), |row| {
        let root = root_mean_square(row, eps);
        row.iter().zip(weight).map(|(x, w)| x / root * (1.0 + f64::from(*w))).collect()
    })
}

/// weight · x / √(mean(x²) + eps) · silu(z) for every row of `weight.len()` values.
pub fn naive_gated_rms_norm(x: &[f32], z: &[f32], weight: &[f32], eps: f64) -> Vec<f64> {
    let normed = rows(x, weight.len(), |row| {
        let root = root_mean_square(row, eps);
        row.iter().zip(weight).map(|(x, w)| f64::from(*w) * x / root).collect()
    });
    normed.iter().zip(z).map(|(x, z)| x * naive_activation(Activation::Silu, f64::from(*z))).collect()
}

fn root_mean_square(row: &[f64], eps: f64) -> f64 {
    (row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64 + eps).sqrt()
}

fn rows(x: &[f32], columns: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    wide.chunks(columns.max(1)).flat_map(f).collect()
}

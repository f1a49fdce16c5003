//! Products and weights in float64.

use crate::Q8_GROUP;

/// A matrix on the host, row after row.
#[derive(Clone, Debug)]
pub struct Host {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The values.
    pub values: Vec<f32>,
}

impl Host {
    /// Random values, a pure function of `name`.
    pub fn uniform(name: &str, rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: crate::testing::uniform(name, rows * columns) }
    }

    /// This matrix transposed.
    pub fn transposed(&self) -> Self {
        let index = (0..self.columns).flat_map(|c| (0..self.rows).map(move |r| r * self.columns + c));
        let values = index.map(|index| self.values[index]).collect();
        Self { rows: self.columns, columns: self.rows, values }
    }
}

/// A product, and what its rounding errors are measured against.
#[derive(Clone, Debug)]
pub struct Product {
    /// alpha · Σ aᵢbᵢ + beta · c
    pub values: Vec<f64>,
    /// |alpha| · Σ |aᵢbᵢ| + |beta · c|
    pub magnitudes: Vec<f64>,
}

/// alpha · A · B + beta · C
///
/// # Panics
/// When the sizes do not fit together.
pub fn naive_gemm(a: &Host, b: &Host, c: &Host, alpha: f64, beta: f64) -> Product {
    assert_eq!((a.columns, a.rows, b.columns), (b.rows, c.rows, c.columns));
    let mut product = Product { values: Vec::new(), magnitudes: Vec::new() };
    for row in 0..c.rows {
        for column in 0..c.columns {
            let term = |i: usize| {
                f64::from(a.values[row * a.columns + i]) * f64::from(b.values[i * b.columns + column])
            };
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for term in (0..a.columns).map(term) {
                sum += term;
                magnitude += term.abs();
            }
            let old = if beta == 0.0 { 0.0 } else { beta * f64::from(c.values[row * c.columns + column]) };
            product.values.push(alpha * sum + old);
            product.magnitudes.push(alpha.abs() * magnitude + old.abs());
        }
    }
    product
}

/// The values of an 8-bit weight with `columns` inputs, as float32 rounds them.
///
/// # Panics
/// When there are too few scales.
pub fn naive_dequantize(codes: &[i8], scales: &[f32], columns: usize) -> Vec<f32> {
    let groups = columns.div_ceil(Q8_GROUP);
    let value = |(index, code): (usize, &i8)| {
        let (row, column) = (index / columns, index % columns);
        f32::from(*code) * scales[row * groups + column / Q8_GROUP]
    };
    codes.iter().enumerate().map(value).collect()
}

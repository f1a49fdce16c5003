//! The window kernels on the CPU.

use fermi_blas::{Cpu, Result, View, ViewMut};

use crate::window_backend::{check_attention, check_mean};
use crate::{WINDOW_PATCHES, WindowBackend};

impl WindowBackend for Cpu {
    fn window_attention(
        &self,
        qkv: View<'_, Self>,
        heads: usize,
        scaling: f32,
        context: ViewMut<'_, Self>,
    ) -> Result<()> {
        let head_dim = check_attention(&qkv, heads, &context.as_view())?;
        let (rows, width) = (context.rows(), context.columns());
        if rows == 0 || width == 0 {
            return Ok(());
        }
        let windows = context.reshape(rows / WINDOW_PATCHES, WINDOW_PATCHES * width)?; // [W, 4 D]
        self.for_each_row(windows, |window, context| {
            let rows: [&[f32]; WINDOW_PATCHES] =
                std::array::from_fn(|patch| qkv.row(window * WINDOW_PATCHES + patch));
            for (query, context) in rows.iter().zip(context.chunks_exact_mut(width)) {
                for (head, context) in context.chunks_exact_mut(head_dim).enumerate() {
                    let part = |row: &'_ [f32], block: usize| block * width + head * head_dim..row.len();
                    let query = &query[part(query, 0)][..head_dim];
                    let scores = rows.map(|row| dot(query, &row[part(row, 1)]) * scaling);
                    let weights = softmax(scores);
                    context.fill(0.0);
                    for (row, weight) in rows.iter().zip(weights) {
                        for (c, v) in context.iter_mut().zip(&row[part(row, 2)]) {
                            *c += weight * v;
                        }
                    }
                }
            }
        });
        Ok(())
    }

    fn add_window_mean_in_place(&self, windows: View<'_, Self>, x: ViewMut<'_, Self>) -> Result<()> {
        check_mean(&windows, &x.as_view())?;
        self.for_each_row(x, |window, x| {
            let [a, b, c, d] = std::array::from_fn(|patch| windows.row(window * WINDOW_PATCHES + patch));
            for ((((x, a), b), c), d) in x.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *x += (a + b + c + d) / WINDOW_PATCHES as f32;
            }
        });
        Ok(())
    }
}

/// The product of two vectors, in 8 sums side by side: fewer roundings meet in one sum, and it vectorises.
fn dot(x: &[f32], y: &[f32]) -> f32 {
    let y = &y[..x.len()];
    let (x_lanes, x_rest) = x.as_chunks::<8>();
    let (y_lanes, y_rest) = y.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for (x, y) in x_lanes.iter().zip(y_lanes) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f32>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f32>()
}

fn softmax(scores: [f32; WINDOW_PATCHES]) -> [f32; WINDOW_PATCHES] {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponentials = scores.map(|score| (score - largest).exp());
    let sum: f32 = exponentials.iter().sum();
    exponentials.map(|exponential| exponential / sum)
}

//! Row operations on the CPU.

use crate::blas::check;
use crate::{Activation, BatchViewMut, Cpu, Result, RotaryTable, RowOps, View, ViewMut};

impl RowOps for Cpu {
    fn add_in_place(&self, x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<()> {
        check("add_in_place", "columns", x.columns(), y.columns())?;
        let broadcast = y.rows() == 1;
        if !broadcast {
            check("add_in_place", "rows", x.rows(), y.rows())?;
        }
        self.for_each_row(x, |index, row| {
            for (x, y) in row.iter_mut().zip(y.row(if broadcast { 0 } else { index })) {
                *x += y;
            }
        });
        Ok(())
    }

    fn layer_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        bias: View<'_, Self>,
        eps: f32,
        y: ViewMut<'_, Self>,
    ) -> Result<()> {
        check("layer_norm", "rows", x.rows(), y.rows())?;
        for columns in [y.columns(), weight.columns(), bias.columns()] {
            check("layer_norm", "columns", x.columns(), columns)?;
        }
        let (weight, bias) = (weight.row(0), bias.row(0));
        self.for_each_row(y, |index, y| {
            let x = x.row(index);
            let mean = x.iter().sum::<f32>() / x.len() as f32;
            let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / x.len() as f32;
            let inverse = 1.0 / (variance + eps).sqrt();
            for (((y, x), w), b) in y.iter_mut().zip(x).zip(weight).zip(bias) {
                *y = (x - mean) * inverse * w + b;
            }
        });
        Ok(())
    }

    fn rms_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
        y: ViewMut<'_, Self>,
    ) -> Result<()> {
        check("rms_norm", "rows", x.rows(), y.rows())?;
        check("rms_norm", "columns", x.columns(), y.columns())?;
        check("rms_norm", "weight columns", x.columns(), weight.columns())?;
        let weight = weight.row(0);
        self.for_each_row(y, |index, y| {
            let x = x.row(index);
            let inverse = inverse_rms(x, eps);
            for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
                *y = x * inverse * (1.0 + w);
            }
        });
        Ok(())
    }

    fn rms_norm_in_place(&self, x: BatchViewMut<'_, Self>, weight: View<'_, Self>, eps: f32) -> Result<()> {
        check("rms_norm_in_place", "weight columns", x.columns(), weight.columns())?;
        let (batch, weight) = (x.batch(), weight.row(0));
        let elements = batch * x.rows() * x.columns();
        let rows = x.share_rows();
        self.for_each(batch * rows.rows(), elements, |index| {
            // SAFETY: every (entry, row) is visited once.
            let row = unsafe { rows.row_mut(index % batch, index / batch) };
            let inverse = inverse_rms(row, eps);
            for (x, w) in row.iter_mut().zip(weight) {
                *x = *x * inverse * (1.0 + w);
            }
        });
        Ok(())
    }

    fn gated_rms_norm_in_place(
        &self,
        x: ViewMut<'_, Self>,
        z: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
    ) -> Result<()> {
        check("gated_rms_norm_in_place", "rows", x.rows(), z.rows())?;
        check("gated_rms_norm_in_place", "columns", x.columns(), z.columns())?;
        check("gated_rms_norm_in_place", "weight columns", x.columns(), weight.columns())?;
        let weight = weight.row(0);
        self.for_each_row(x, |index, row| {
            let inverse = inverse_rms(row, eps);
            for ((x, z), w) in row.iter_mut().zip(z.row(index)).zip(weight) {
                *x = w * (*x * inverse) * apply(Activation::Silu, *z);
            }
        });
        Ok(())
    }

    fn softmax_in_place(&self, x: ViewMut<'_, Self>, scale: f32) -> Result<()> {
        self.for_each_row(x, |_, row| softmax(row, scale));
        Ok(())
    }

    fn causal_softmax_in_place(
        &self,
        x: ViewMut<'_, Self>,
        heads: usize,
        positions: View<'_, Self, u32>,
        scale: f32,
    ) -> Result<()> {
        check("causal_softmax_in_place", "rows", positions.columns() * heads, x.rows())?;
        if x.rows() == 0 {
            return Ok(());
        }
        let positions = positions.row(0);
        self.for_each_row(x, |index, row| {
            let visible = (positions[index / heads] as usize + 1).min(row.len());
            let (visible, hidden) = row.split_at_mut(visible);
            softmax(visible, scale);
            hidden.fill(0.0);
        });
        Ok(())
    }

    fn rotary_in_place(
        &self,
        x: BatchViewMut<'_, Self>,
        positions: View<'_, Self, u32>,
        table: &RotaryTable<Self>,
    ) -> Result<()> {
        let half = table.cosines.columns();
        check("rotary_in_place", "positions", x.rows(), positions.columns())?;
        check("rotary_in_place", "columns", x.columns().max(2 * half), x.columns())?;
        if x.rows() == 0 {
            return Ok(());
        }
        let (batch, positions) = (x.batch(), positions.row(0));
        let elements = batch * x.rows() * x.columns();
        let (cosines, sines) = (table.cosines.view(), table.sines.view());
        if let Some(&index) = positions.iter().find(|&&index| index as usize >= cosines.rows()) {
            let (index, rows) = (index as usize, cosines.rows());
            return Err(crate::Error::Index { operation: "rotary_in_place", index, rows });
        }
        let rows = x.share_rows();
        self.for_each(batch * rows.rows(), elements, |index| {
            let position = positions[index / batch] as usize;
            // SAFETY: every (entry, row) is visited once.
            let row = unsafe { rows.row_mut(index % batch, index / batch) };
            let (a, b) = row[..2 * half].split_at_mut(half);
            for (((a, b), cos), sin) in
                a.iter_mut().zip(b).zip(cosines.row(position)).zip(sines.row(position))
            {
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        });
        Ok(())
    }

    fn activate_in_place(&self, activation: Activation, x: ViewMut<'_, Self>) -> Result<()> {
        self.for_each_row(x, |_, row| row.iter_mut().for_each(|x| *x = apply(activation, *x)));
        Ok(())
    }

    fn gate_in_place(
        &self,
        activation: Activation,
        x: ViewMut<'_, Self>,
        gate: View<'_, Self>,
    ) -> Result<()> {
        check("gate_in_place", "rows", x.rows(), gate.rows())?;
        check("gate_in_place", "columns", x.columns(), gate.columns())?;
        self.for_each_row(x, |index, row| {
            for (x, gate) in row.iter_mut().zip(gate.row(index)) {
                *x *= apply(activation, *gate);
            }
        });
        Ok(())
    }

    fn argmax(&self, x: View<'_, Self>, mut index: ViewMut<'_, Self, u32>) -> Result<()> {
        check("argmax", "rows", 1, index.rows())?;
        check("argmax", "columns", x.rows(), index.columns())?;
        for row in 0..x.rows() {
            index.row_mut(0)[row] = first_largest(x.row(row));
        }
        Ok(())
    }
}

fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    let mean_square = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    1.0 / (mean_square + eps).sqrt()
}

fn softmax(row: &mut [f32], scale: f32) {
    let largest = row.iter().fold(f32::NEG_INFINITY, |largest, x| largest.max(x * scale));
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x * scale - largest).exp();
        sum += *x;
    }
    row.iter_mut().for_each(|x| *x /= sum);
}

fn apply(activation: Activation, x: f32) -> f32 {
    match activation {
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::GeluTanh => {
            let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            0.5 * x * (1.0 + inner.tanh())
        }
        Activation::GeluErf => 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)),
    }
}

/// The error function, by the continued power series of erf near 0 and of erfc beyond, in float64.
fn erf(x: f32) -> f32 {
    let x = f64::from(x);
    let magnitude = x.abs();
    if magnitude < 3.0 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while f64::abs(term) > 1e-12 {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        (sum * std::f64::consts::FRAC_2_SQRT_PI) as f32
    } else {
        let mut tail = 0.0;
        for k in (1..60).rev() {
            tail = f64::from(k) / 2.0 / (magnitude + tail);
        }
        let complement = (-magnitude * magnitude).exp() / (magnitude + tail) / std::f64::consts::PI.sqrt();
        (1.0 - complement).copysign(x) as f32
    }
}

fn first_largest(row: &[f32]) -> u32 {
    let mut best: Option<(usize, f32)> = None;
    for (index, &x) in row.iter().enumerate() {
        if x.is_nan() {
            return u32::MAX;
        }
        if best.is_none_or(|(_, largest)| x > largest) {
            best = Some((index, x));
        }
    }
    best.filter(|(_, x)| *x > f32::NEG_INFINITY).map_or(u32::MAX, |(index, _)| index as u32)
}

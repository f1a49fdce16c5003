//! Layer norm, RMS norm and gated RMS norm.

use super::instructions::{Isa, Kernel};
use super::{lanes, math};
use crate::blas::check;
use crate::{BatchViewMut, Cpu, Result, View, ViewMut};

/// One row of a layer norm.
struct LayerNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    eps: f32,
    y: &'a mut [f32],
}

impl Kernel for LayerNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { x, weight, bias, eps, y } = self;
        let count = x.len() as f32;
        let mean = lanes::sum(x) / count;
        // The deviations' own squares: mean(x²) − mean² would cancel.
        let squares = lanes::sum_by(x, |sum, x| I::mul_add(x - mean, x - mean, sum));
        let inverse = 1.0 / (squares / count + eps).sqrt();
        for (((y, x), w), b) in y.iter_mut().zip(x).zip(weight).zip(bias) {
            *y = I::mul_add((x - mean) * inverse, *w, *b);
        }
    }
}

pub(super) fn layer_norm(
    device: &Cpu,
    x: View<'_, Cpu>,
    weight: View<'_, Cpu>,
    bias: View<'_, Cpu>,
    eps: f32,
    y: ViewMut<'_, Cpu>,
) -> Result<()> {
    check("layer_norm", "rows", x.rows(), y.rows())?;
    for columns in [y.columns(), weight.columns(), bias.columns()] {
        check("layer_norm", "columns", x.columns(), columns)?;
    }
    for rows in [weight.rows(), bias.rows()] {
        check("layer_norm", "weight rows", 1, rows)?;
    }
    let (weight, bias) = (weight.row(0), bias.row(0));
    device.for_each_row(y, |index, y| device.run(LayerNorm { x: x.row(index), weight, bias, eps, y }));
    Ok(())
}

#[inline(always)]
fn inverse_rms<I: Isa>(x: &[f32], eps: f32) -> f32 {
    1.0 / (lanes::sum_of_squares::<I>(x) / x.len() as f32 + eps).sqrt()
}

/// One row of a zero-centred RMS norm.
struct RmsNorm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    y: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let inverse = inverse_rms::<I>(self.x, self.eps);
        for ((y, x), w) in self.y.iter_mut().zip(self.x).zip(self.weight) {
            *y = x * inverse * (1.0 + w);
        }
    }
}

pub(super) fn rms_norm(
    device: &Cpu,
    x: View<'_, Cpu>,
    weight: View<'_, Cpu>,
    eps: f32,
    y: ViewMut<'_, Cpu>,
) -> Result<()> {
    check("rms_norm", "rows", x.rows(), y.rows())?;
    check("rms_norm", "columns", x.columns(), y.columns())?;
    check("rms_norm", "weight columns", x.columns(), weight.columns())?;
    check("rms_norm", "weight rows", 1, weight.rows())?;
    let weight = weight.row(0);
    device.for_each_row(y, |index, y| device.run(RmsNorm { x: x.row(index), weight, eps, y }));
    Ok(())
}

/// One row of a zero-centred RMS norm, in place.
struct RmsNormInPlace<'a> {
    x: &'a mut [f32],
    weight: &'a [f32],
    eps: f32,
}

impl Kernel for RmsNormInPlace<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let inverse = inverse_rms::<I>(self.x, self.eps);
        for (x, w) in self.x.iter_mut().zip(self.weight) {
            *x = *x * inverse * (1.0 + w);
        }
    }
}

pub(super) fn rms_norm_in_place(
    device: &Cpu,
    x: BatchViewMut<'_, Cpu>,
    weight: View<'_, Cpu>,
    eps: f32,
) -> Result<()> {
    check("rms_norm_in_place", "weight columns", x.columns(), weight.columns())?;
    check("rms_norm_in_place", "weight rows", 1, weight.rows())?;
    let weight = weight.row(0);
    device.for_each_batch_row(x, |_, row| device.run(RmsNormInPlace { x: row, weight, eps }));
    Ok(())
}

/// One row of a gated RMS norm.
struct GatedRmsNorm<'a> {
    x: &'a mut [f32],
    z: &'a [f32],
    weight: &'a [f32],
    eps: f32,
}

impl Kernel for GatedRmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let inverse = inverse_rms::<I>(self.x, self.eps);
        for ((x, z), w) in self.x.iter_mut().zip(self.z).zip(self.weight) {
            *x = w * (*x * inverse) * math::silu::<I>(*z);
        }
    }
}

pub(super) fn gated_rms_norm_in_place(
    device: &Cpu,
    x: ViewMut<'_, Cpu>,
    z: View<'_, Cpu>,
    weight: View<'_, Cpu>,
    eps: f32,
) -> Result<()> {
    check("gated_rms_norm_in_place", "rows", x.rows(), z.rows())?;
    check("gated_rms_norm_in_place", "columns", x.columns(), z.columns())?;
    check("gated_rms_norm_in_place", "weight columns", x.columns(), weight.columns())?;
    check("gated_rms_norm_in_place", "weight rows", 1, weight.rows())?;
    let weight = weight.row(0);
    device.for_each_row(x, |index, x| device.run(GatedRmsNorm { x, z: z.row(index), weight, eps }));
    Ok(())
}

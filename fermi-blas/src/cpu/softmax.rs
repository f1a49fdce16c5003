//! Softmax, plain and causal.

use super::instructions::{Isa, Kernel, LANES};
use super::{lanes, math};
use crate::blas::check;
use crate::{Cpu, Result, View, ViewMut};

/// One row: exp(x · scale − largest) / sum. A NaN makes its whole row NaN, and so does a row of −∞ only.
struct Softmax<'a> {
    row: &'a mut [f32],
    scale: f32,
}

impl Kernel for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { row, scale } = self;
        let largest = lanes::max_scaled(row, scale);
        let mut sums = [0.0; LANES];
        let (chunks, rest) = row.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                chunk[lane] = math::exp::<I>(chunk[lane] * scale - largest);
                sums[lane] += chunk[lane];
            }
        }
        for (sum, x) in sums.iter_mut().zip(rest) {
            *x = math::exp::<I>(*x * scale - largest);
            *sum += *x;
        }
        let inverse = 1.0 / lanes::total(sums);
        for x in row {
            *x *= inverse;
        }
    }
}

pub(super) fn softmax_in_place(device: &Cpu, x: ViewMut<'_, Cpu>, scale: f32) -> Result<()> {
    device.for_each_row(x, |_, row| device.run(Softmax { row, scale }));
    Ok(())
}

pub(super) fn causal_softmax_in_place(
    device: &Cpu,
    x: ViewMut<'_, Cpu>,
    heads: usize,
    positions: View<'_, Cpu, u32>,
    scale: f32,
) -> Result<()> {
    check("causal_softmax_in_place", "rows", positions.columns().saturating_mul(heads), x.rows())?;
    if x.rows() == 0 {
        return Ok(());
    }
    check("causal_softmax_in_place", "position rows", 1, positions.rows())?;
    let positions = positions.row(0);
    device.for_each_row(x, |index, row| {
        let visible = (positions[index / heads] as usize).saturating_add(1).min(row.len());
        let (visible, hidden) = row.split_at_mut(visible);
        device.run(Softmax { row: visible, scale });
        hidden.fill(0.0);
    });
    Ok(())
}

//! Rotary positions.

use super::instructions::{Isa, Kernel};
use crate::blas::check;
use crate::{BatchViewMut, Cpu, Error, Result, RotaryTable, View};

/// The pairs (a, b) of one row, each turned by its angle.
struct Rotate<'a> {
    a: &'a mut [f32],
    b: &'a mut [f32],
    cosines: &'a [f32],
    sines: &'a [f32],
}

impl Kernel for Rotate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (((a, b), cos), sin) in self.a.iter_mut().zip(self.b).zip(self.cosines).zip(self.sines) {
            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
        }
    }
}

pub(super) fn rotary_in_place(
    device: &Cpu,
    x: BatchViewMut<'_, Cpu>,
    positions: View<'_, Cpu, u32>,
    table: &RotaryTable<Cpu>,
) -> Result<()> {
    let half = table.cosines.columns();
    check("rotary_in_place", "positions", x.rows(), positions.columns())?;
    check("rotary_in_place", "columns", x.columns().max(2 * half), x.columns())?;
    if x.rows() == 0 {
        return Ok(());
    }
    check("rotary_in_place", "position rows", 1, positions.rows())?;
    let positions = positions.row(0);
    let (cosines, sines) = (table.cosines.view(), table.sines.view());
    if let Some(&index) = positions.iter().find(|&&index| index as usize >= cosines.rows()) {
        let (index, rows) = (index as usize, cosines.rows());
        return Err(Error::Index { operation: "rotary_in_place", index, rows });
    }
    device.for_each_batch_row(x, |row, values| {
        let (a, b) = values[..2 * half].split_at_mut(half);
        let position = positions[row] as usize;
        device.run(Rotate { a, b, cosines: cosines.row(position), sines: sines.row(position) });
    });
    Ok(())
}

//! Sums of matrices.

use super::instructions::{Isa, Kernel};
use crate::blas::check;
use crate::{Cpu, Result, View, ViewMut};

/// x += y over one row.
struct Add<'a> {
    x: &'a mut [f32],
    y: &'a [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (x, y) in self.x.iter_mut().zip(self.y) {
            *x += y;
        }
    }
}

pub(super) fn add_in_place(device: &Cpu, x: ViewMut<'_, Cpu>, y: View<'_, Cpu>) -> Result<()> {
    check("add_in_place", "columns", x.columns(), y.columns())?;
    let broadcast = y.rows() == 1;
    if !broadcast {
        check("add_in_place", "rows", x.rows(), y.rows())?;
    }
    device.for_each_row(x, |index, x| device.run(Add { x, y: y.row(if broadcast { 0 } else { index }) }));
    Ok(())
}

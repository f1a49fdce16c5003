//! The largest value's index.

use super::instructions::{Isa, Kernel, LANES};
use super::lanes;
use crate::blas::check;
use crate::{Cpu, Result, View, ViewMut};

/// The first index of the largest value; none when there is a NaN or nothing finite.
struct FirstLargest<'a>(&'a [f32]);

impl Kernel for FirstLargest<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Option<usize> {
        let row = self.0;
        let largest = lanes::max_scaled(row, 1.0);
        if largest == f32::NEG_INFINITY || any_nan(row) {
            return None;
        }
        row.iter().position(|x| *x == largest)
    }
}

#[inline(always)]
fn any_nan(row: &[f32]) -> bool {
    let mut found = [false; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            found[lane] |= chunk[lane].is_nan();
        }
    }
    found.contains(&true) || rest.iter().any(|x| x.is_nan())
}

pub(super) fn argmax(device: &Cpu, x: View<'_, Cpu>, mut index: ViewMut<'_, Cpu, u32>) -> Result<()> {
    check("argmax", "rows", 1, index.rows())?;
    check("argmax", "columns", x.rows(), index.columns())?;
    let index = index.row_mut(0);
    for (row, index) in index.iter_mut().enumerate() {
        *index = device.run(FirstLargest(x.row(row))).map_or(u32::MAX, |index| index as u32);
    }
    Ok(())
}

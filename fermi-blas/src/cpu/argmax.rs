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
        let (chunks, _) = row.as_chunks::<LANES>();
        let chunk = chunks.iter().position(|chunk| any(chunk, |x| x == largest));
        let start = chunk.unwrap_or(chunks.len()) * LANES;
        row[start..].iter().position(|x| *x == largest).map(|index| start + index)
    }
}

#[inline(always)]
fn any(chunk: &[f32; LANES], holds: impl Fn(f32) -> bool) -> bool {
    let mut found = false;
    for x in chunk {
        found |= holds(*x);
    }
    found
}

#[inline(always)]
fn any_nan(row: &[f32]) -> bool {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut found = false;
    for chunk in chunks {
        found |= any(chunk, f32::is_nan);
    }
    found || rest.iter().any(|x| x.is_nan())
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

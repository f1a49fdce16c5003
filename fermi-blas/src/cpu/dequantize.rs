//! Weights as float32: all rows of one, or some rows of a table by their index.

use half::bf16;

use super::instructions::{Isa, Kernel};
use crate::blas::check;
use crate::{Cpu, Error, Q8_GROUP, Result, View, ViewMut, WeightView};

/// One row of bfloat16 values.
struct Widen<'a> {
    row: &'a [bf16],
    values: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (value, w) in self.values.iter_mut().zip(self.row) {
            *value = widen(*w);
        }
    }
}

/// A bfloat16 is the upper half of a float32.
#[inline(always)]
pub(super) fn widen(w: bf16) -> f32 {
    f32::from_bits(u32::from(w.to_bits()) << 16)
}

/// One row of codes times their groups' scales.
struct Scale<'a> {
    codes: &'a [i8],
    scales: &'a [f32],
    values: &'a mut [f32],
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (codes, rest_codes) = self.codes.as_chunks::<Q8_GROUP>();
        let (values, rest_values) = self.values.as_chunks_mut::<Q8_GROUP>();
        for ((values, codes), scale) in values.iter_mut().zip(codes).zip(self.scales) {
            for (value, code) in values.iter_mut().zip(codes) {
                *value = f32::from(*code) * scale;
            }
        }
        if let (Some(scale), false) = (self.scales.last(), rest_codes.is_empty()) {
            for (value, code) in rest_values.iter_mut().zip(rest_codes) {
                *value = f32::from(*code) * scale;
            }
        }
    }
}

fn row(device: &Cpu, weight: WeightView<'_, Cpu>, index: usize, values: &mut [f32]) {
    match weight {
        WeightView::F32(weight) => values.copy_from_slice(weight.row(index)),
        WeightView::Bf16(weight) => device.run(Widen { row: weight.row(index), values }),
        WeightView::Q8 { codes, scales } => {
            device.run(Scale { codes: codes.row(index), scales: scales.row(index), values });
        }
    }
}

pub(super) fn dequantize(device: &Cpu, weight: WeightView<'_, Cpu>, values: ViewMut<'_, Cpu>) -> Result<()> {
    check("dequantize", "rows", weight.rows(), values.rows())?;
    check("dequantize", "columns", weight.columns(), values.columns())?;
    weight.check("dequantize")?;
    device.for_each_row(values, |index, values| row(device, weight, index, values));
    Ok(())
}

pub(super) fn gather(
    device: &Cpu,
    table: WeightView<'_, Cpu>,
    indices: View<'_, Cpu, u32>,
    values: ViewMut<'_, Cpu>,
) -> Result<()> {
    check("gather", "rows", indices.columns(), values.rows())?;
    check("gather", "columns", table.columns(), values.columns())?;
    table.check("gather")?;
    if indices.columns() == 0 {
        return Ok(());
    }
    check("gather", "index rows", 1, indices.rows())?;
    let (indices, rows) = (indices.row(0), table.rows());
    if let Some(&index) = indices.iter().find(|&&index| index as usize >= rows) {
        return Err(Error::Index { operation: "gather", index: index as usize, rows });
    }
    device.for_each_row(values, |index, values| row(device, table, indices[index] as usize, values));
    Ok(())
}

//! Row operations on a CUDA device.

use super::blas::arguments;
use super::kernels::{argmax, elementwise, norm, rotary, softmax};
use super::{Argument, Gpu, Runtime, Shape};
use crate::blas::check;
use crate::{Activation, BatchViewMut, Result, RotaryTable, RowOps, View, ViewMut};

/// Threads of a block of these kernels.
const THREADS: u32 = 256;

/// The number that `kernels/math.cuh` knows a function by.
fn number(activation: Activation) -> u32 {
    match activation {
        Activation::Silu => 0,
        Activation::Sigmoid => 1,
        Activation::GeluTanh => 2,
        Activation::GeluErf => 3,
    }
}

/// Columns of a row at most that fits the registers, or else the shared memory, of its block in `kernels/softmax.cu`.
const HELD_COLUMNS: usize = 1_024;
const KEPT_COLUMNS: usize = 12_000;

impl<R: Runtime> Gpu<R> {
    /// Softmax of x · scale, of all values or of those that the queries' positions let them see.
    fn softmax(
        &self,
        mut x: ViewMut<'_, Self>,
        positions: Option<View<'_, Self, u32>>,
        heads: usize,
        scale: f32,
    ) -> Result<()> {
        let (rows, columns, stride) = (x.rows(), x.columns(), x.row_stride());
        if rows * columns == 0 {
            return Ok(());
        }
        if let Some(positions) = positions {
            check("causal_softmax_in_place", "position rows", 1, positions.rows())?;
        }
        let positions = positions.map_or(0, |positions| positions.address());
        let (kernel, kept) = if columns <= HELD_COLUMNS {
            (softmax::softmax_held, 0)
        } else if columns <= KEPT_COLUMNS {
            (softmax::softmax_kept, columns)
        } else {
            (softmax::softmax_long, 0)
        };
        let shape = Shape::blocks(rows, THREADS).shared(kept * size_of::<f32>());
        let arguments = arguments![x.address(), positions, rows, columns, stride, heads, scale];
        // SAFETY: the kernel's arguments; the caller checked the positions' number, and x is exclusive.
        unsafe { self.launch(kernel, shape, &arguments) }
    }
}

impl<R: Runtime> RowOps for Gpu<R> {
    fn add_in_place(&self, mut x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<()> {
        check("add_in_place", "columns", x.columns(), y.columns())?;
        if y.rows() != 1 {
            check("add_in_place", "rows", x.rows(), y.rows())?;
        }
        let (rows, columns, stride) = (x.rows(), x.columns(), x.row_stride());
        if rows * columns == 0 {
            return Ok(());
        }
        let y_stride = if y.rows() == 1 { 0 } else { y.row_stride() };
        let arguments = arguments![x.address(), y.address(), rows, columns, stride, y_stride];
        // SAFETY: the kernel's arguments; the sizes were checked, and x is exclusive.
        unsafe { self.launch(elementwise::add, Shape::threads(rows * columns, THREADS), &arguments) }
    }

    fn layer_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        bias: View<'_, Self>,
        eps: f32,
        mut y: ViewMut<'_, Self>,
    ) -> Result<()> {
        check("layer_norm", "rows", x.rows(), y.rows())?;
        for columns in [y.columns(), weight.columns(), bias.columns()] {
            check("layer_norm", "columns", x.columns(), columns)?;
        }
        for rows in [weight.rows(), bias.rows()] {
            check("layer_norm", "weight rows", 1, rows)?;
        }
        let (rows, columns) = (x.rows(), x.columns());
        if rows * columns == 0 {
            return Ok(());
        }
        let (x_stride, y_stride) = (x.row_stride(), y.row_stride());
        let (x, weight, bias, y) = (x.address(), weight.address(), bias.address(), y.address());
        let arguments = arguments![x, weight, bias, y, rows, columns, x_stride, y_stride, eps];
        // SAFETY: the kernel's arguments; the sizes were checked, and y is exclusive.
        unsafe { self.launch(norm::layer_norm, Shape::blocks(rows, THREADS), &arguments) }
    }

    fn rms_norm(
        &self,
        x: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
        mut y: ViewMut<'_, Self>,
    ) -> Result<()> {
        check("rms_norm", "rows", x.rows(), y.rows())?;
        check("rms_norm", "columns", x.columns(), y.columns())?;
        check("rms_norm", "weight columns", x.columns(), weight.columns())?;
        check("rms_norm", "weight rows", 1, weight.rows())?;
        let (rows, columns) = (x.rows(), x.columns());
        if rows * columns == 0 {
            return Ok(());
        }
        let (x_stride, y_stride) = (x.row_stride(), y.row_stride());
        let (x, weight, y) = (x.address(), weight.address(), y.address());
        let arguments = arguments![x, weight, y, 1u64, rows, columns, 0u64, x_stride, 0u64, y_stride, eps];
        // SAFETY: the kernel's arguments; the sizes were checked, and y is exclusive.
        unsafe { self.launch(norm::rms_norm, Shape::blocks(rows, THREADS), &arguments) }
    }

    fn rms_norm_in_place(
        &self,
        mut x: BatchViewMut<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
    ) -> Result<()> {
        check("rms_norm_in_place", "weight columns", x.columns(), weight.columns())?;
        check("rms_norm_in_place", "weight rows", 1, weight.rows())?;
        let (batch, rows, columns) = (x.batch(), x.rows(), x.columns());
        if batch * rows * columns == 0 {
            return Ok(());
        }
        let (batch_stride, stride) = (x.batch_stride(), x.row_stride());
        let (x, weight) = (x.address(), weight.address());
        let arguments =
            arguments![x, weight, x, batch, rows, columns, batch_stride, stride, batch_stride, stride, eps];
        // SAFETY: the kernel's arguments; the sizes were checked, x is exclusive, and the kernel may work in place.
        unsafe { self.launch(norm::rms_norm, Shape::blocks(batch * rows, THREADS), &arguments) }
    }

    fn gated_rms_norm_in_place(
        &self,
        mut x: ViewMut<'_, Self>,
        z: View<'_, Self>,
        weight: View<'_, Self>,
        eps: f32,
    ) -> Result<()> {
        check("gated_rms_norm_in_place", "rows", x.rows(), z.rows())?;
        check("gated_rms_norm_in_place", "columns", x.columns(), z.columns())?;
        check("gated_rms_norm_in_place", "weight columns", x.columns(), weight.columns())?;
        check("gated_rms_norm_in_place", "weight rows", 1, weight.rows())?;
        let (rows, columns, stride) = (x.rows(), x.columns(), x.row_stride());
        if rows * columns == 0 {
            return Ok(());
        }
        let (z_stride, z, weight) = (z.row_stride(), z.address(), weight.address());
        let arguments = arguments![x.address(), z, weight, rows, columns, stride, z_stride, eps];
        // SAFETY: the kernel's arguments; the sizes were checked, and x is exclusive.
        unsafe { self.launch(norm::gated_rms_norm, Shape::blocks(rows, THREADS), &arguments) }
    }

    fn softmax_in_place(&self, x: ViewMut<'_, Self>, scale: f32) -> Result<()> {
        self.softmax(x, None, 1, scale)
    }

    fn causal_softmax_in_place(
        &self,
        x: ViewMut<'_, Self>,
        heads: usize,
        positions: View<'_, Self, u32>,
        scale: f32,
    ) -> Result<()> {
        check("causal_softmax_in_place", "rows", positions.columns().saturating_mul(heads), x.rows())?;
        self.softmax(x, Some(positions), heads, scale)
    }

    fn rotary_in_place(
        &self,
        mut x: BatchViewMut<'_, Self>,
        positions: View<'_, Self, u32>,
        table: &RotaryTable<Self>,
    ) -> Result<()> {
        let half = table.cosines.columns();
        check("rotary_in_place", "positions", x.rows(), positions.columns())?;
        check("rotary_in_place", "columns", x.columns().max(2 * half), x.columns())?;
        let (batch, rows) = (x.batch(), x.rows());
        if batch * rows * half == 0 {
            return Ok(());
        }
        check("rotary_in_place", "position rows", 1, positions.rows())?;
        let (batch_stride, stride) = (x.batch_stride(), x.row_stride());
        let (cosines, sines) = (table.cosines.view().address(), table.sines.view().address());
        let arguments = arguments![
            x.address(),
            positions.address(),
            cosines,
            sines,
            batch,
            rows,
            half,
            batch_stride,
            stride
        ];
        // SAFETY: the kernel's arguments; the sizes were checked, and x is exclusive.
        unsafe { self.launch(rotary::rotary, Shape::threads(batch * rows * half, THREADS), &arguments) }
    }

    fn activate_in_place(&self, activation: Activation, mut x: ViewMut<'_, Self>) -> Result<()> {
        let (rows, columns, stride) = (x.rows(), x.columns(), x.row_stride());
        if rows * columns == 0 {
            return Ok(());
        }
        let arguments = arguments![x.address(), rows, columns, stride, number(activation)];
        // SAFETY: the kernel's arguments; x is exclusive.
        unsafe { self.launch(elementwise::activate, Shape::threads(rows * columns, THREADS), &arguments) }
    }

    fn gate_in_place(
        &self,
        activation: Activation,
        mut x: ViewMut<'_, Self>,
        gate: View<'_, Self>,
    ) -> Result<()> {
        check("gate_in_place", "rows", x.rows(), gate.rows())?;
        check("gate_in_place", "columns", x.columns(), gate.columns())?;
        let (rows, columns, stride) = (x.rows(), x.columns(), x.row_stride());
        if rows * columns == 0 {
            return Ok(());
        }
        let (gate_stride, gates) = (gate.row_stride(), gate.address());
        let arguments =
            arguments![x.address(), gates, rows, columns, stride, gate_stride, number(activation)];
        // SAFETY: the kernel's arguments; the sizes were checked, and x is exclusive.
        unsafe { self.launch(elementwise::gate, Shape::threads(rows * columns, THREADS), &arguments) }
    }

    fn argmax(&self, x: View<'_, Self>, mut index: ViewMut<'_, Self, u32>) -> Result<()> {
        check("argmax", "rows", 1, index.rows())?;
        check("argmax", "columns", x.rows(), index.columns())?;
        let (rows, columns, stride) = (x.rows(), x.columns(), x.row_stride());
        if rows == 0 {
            return Ok(());
        }
        let arguments = arguments![x.address(), index.address(), rows, columns, stride];
        // SAFETY: the kernel's arguments; the sizes were checked, and the index is exclusive.
        unsafe { self.launch(argmax::argmax, Shape::blocks(rows, THREADS), &arguments) }
    }
}

//! Matrix products and weights on a CUDA device.

use super::kernels::{dequantize, gather, gemv};
use super::{Argument, BatchedProduct, Gpu, Kernel, Operand, Runtime, Shape};
use crate::blas::check;
use crate::{BatchView, Blas, Gemm, GemmBatched, Result, View, ViewMut, WeightView};

/// Threads of a block of these kernels.
const THREADS: u32 = 256;

/// Rows of a group of threads in `kernels/gemv.cu`: of 8-bit weights, and of the others.
const Q8_ROWS: usize = 4;
const FLOAT_ROWS: usize = 2;

/// Blocks that fill a large card twice. While a product has fewer, more threads share a row.
const FULL: usize = 256;

/// Threads that share a row, a power of two, and the blocks of a `gemv`: `step` is the columns that a thread takes at once.
fn groups(rows: usize, columns: usize, group_rows: usize, step: usize) -> (u32, usize) {
    let blocks = |lanes: u32| rows.div_ceil(group_rows * (THREADS / lanes) as usize);
    let mut lanes = 32;
    while lanes < THREADS && lanes as usize * step < columns && blocks(lanes) < FULL {
        lanes *= 2;
    }
    (lanes, blocks(lanes))
}

fn operand<R: Runtime>(view: View<'_, Gpu<R>>, transposed: bool) -> Operand {
    Operand { transposed, ..Operand::new(view.address(), view.row_stride(), 0) }
}

/// A matrix of a batch of products, each for `repeat` entries.
fn batched<R: Runtime>(view: BatchView<'_, Gpu<R>>, repeat: usize, transposed: bool) -> Operand {
    Operand { repeat, transposed, ..Operand::new(view.address(), view.row_stride(), view.batch_stride()) }
}

macro_rules! arguments {
    ($($value:expr),+ $(,)?) => { [$(Argument::from($value)),+] };
}
pub(super) use arguments;

impl<R: Runtime> Blas for Gpu<R> {
    /// Reading 8-bit weights four times costs less than writing and reading their float32 values once.
    const GEMV_ROWS: usize = 4;

    fn gemm(&self, product: Gemm<'_, Self>) -> Result<()> {
        let (m, k, n) = product.size();
        let product = BatchedProduct {
            m,
            k,
            n,
            batch: 1,
            a: operand(product.a.view, product.a.transposed),
            b: operand(product.b.view, product.b.transposed),
            c: operand(product.c.as_view(), false),
            alpha: product.alpha,
            beta: product.beta,
        };
        // SAFETY: the views lie in live buffers, the sizes were checked, and C is exclusive.
        unsafe { self.multiply(&product) }
    }

    fn gemm_batched(&self, product: GemmBatched<'_, Self>) -> Result<()> {
        let ((m, k, n), [a_repeat, b_repeat]) = (product.size(), product.repeats());
        let product = BatchedProduct {
            m,
            k,
            n,
            batch: product.c.batch(),
            a: batched(product.a.view, a_repeat, product.a.transposed),
            b: batched(product.b.view, b_repeat, product.b.transposed),
            c: batched(product.c.as_view(), 1, false),
            alpha: product.alpha,
            beta: product.beta,
        };
        // SAFETY: the views lie in live buffers, the sizes were checked, and the entries of C are exclusive and disjoint.
        unsafe { self.multiply(&product) }
    }

    fn gemv(&self, weight: WeightView<'_, Self>, x: View<'_, Self>, mut y: ViewMut<'_, Self>) -> Result<()> {
        check("gemv", "y rows", x.rows(), y.rows())?;
        check("gemv", "x columns", weight.columns(), x.columns())?;
        check("gemv", "y columns", weight.rows(), y.columns())?;
        let (rows, columns, tokens) = (weight.rows(), weight.columns(), x.rows());
        if rows * tokens == 0 {
            return Ok(());
        }
        let (x_stride, y_stride) = (x.row_stride(), y.row_stride());
        let (x, y) = (x.address(), y.address());
        let float = |kernel: Kernel, values: u64, stride: usize, step: usize| {
            let (lanes, blocks) = groups(rows, columns, FLOAT_ROWS, step);
            let arguments =
                arguments![values, x, y, rows, columns, stride, tokens, x_stride, y_stride, lanes];
            // SAFETY: the kernel's arguments; the sizes were checked, and y is exclusive.
            unsafe { self.launch(kernel, Shape::blocks(blocks * tokens, THREADS), &arguments) }
        };
        match weight {
            WeightView::F32(values) => float(gemv::gemv_f32, values.address(), values.row_stride(), 4),
            WeightView::Bf16(values) => float(gemv::gemv_bf16, values.address(), values.row_stride(), 8),
            WeightView::Q8 { codes, scales } => {
                let (mut kernel, mut shape) = (gemv::gemv_q8, groups(rows, columns, Q8_ROWS, 16));
                if shape.1 < FULL / 2 {
                    (kernel, shape) = (gemv::gemv_q8_few, groups(rows, columns, 1, 16));
                }
                let (lanes, blocks) = shape;
                let (code_stride, scale_stride) = (codes.row_stride(), scales.row_stride());
                let (codes, scales) = (codes.address(), scales.address());
                let arguments = arguments![
                    codes,
                    scales,
                    x,
                    y,
                    rows,
                    columns,
                    code_stride,
                    scale_stride,
                    tokens,
                    x_stride,
                    y_stride,
                    lanes
                ];
                // SAFETY: as above.
                unsafe { self.launch(kernel, Shape::blocks(blocks * tokens, THREADS), &arguments) }
            }
        }
    }

    fn dequantize(&self, weight: WeightView<'_, Self>, mut values: ViewMut<'_, Self>) -> Result<()> {
        check("dequantize", "rows", weight.rows(), values.rows())?;
        check("dequantize", "columns", weight.columns(), values.columns())?;
        let (rows, columns, stride) = (values.rows(), values.columns(), values.row_stride());
        if rows * columns == 0 {
            return Ok(());
        }
        let target = values.address();
        match weight {
            WeightView::F32(source) => crate::Backend::copy(self, source, values),
            WeightView::Bf16(words) => {
                let shape = Shape::threads(rows * columns, THREADS);
                let arguments =
                    arguments![words.address(), target, rows, columns, words.row_stride(), stride];
                // SAFETY: the kernel's arguments; the sizes were checked, and the values are exclusive.
                unsafe { self.launch(dequantize::dequantize_bf16, shape, &arguments) }
            }
            WeightView::Q8 { codes, scales } => {
                let shape = Shape::threads(rows * columns.div_ceil(4), THREADS);
                let (code_stride, scale_stride) = (codes.row_stride(), scales.row_stride());
                let (codes, scales) = (codes.address(), scales.address());
                let arguments =
                    arguments![codes, scales, target, rows, columns, code_stride, scale_stride, stride];
                // SAFETY: as above.
                unsafe { self.launch(dequantize::dequantize_q8, shape, &arguments) }
            }
        }
    }

    fn gather(
        &self,
        table: WeightView<'_, Self>,
        indices: View<'_, Self, u32>,
        mut values: ViewMut<'_, Self>,
    ) -> Result<()> {
        check("gather", "index rows", 1, indices.rows())?;
        check("gather", "rows", indices.columns(), values.rows())?;
        check("gather", "columns", table.columns(), values.columns())?;
        let (count, columns, stride) = (values.rows(), values.columns(), values.row_stride());
        if count * columns == 0 {
            return Ok(());
        }
        let shape = Shape::threads(count * columns, THREADS);
        let (indices, target) = (indices.address(), values.address());
        let float = |kernel: Kernel, source: u64, source_stride: usize| {
            let arguments = arguments![source, indices, target, count, columns, source_stride, stride];
            // SAFETY: the kernel's arguments; the sizes were checked, and the values are exclusive. Indices are the
            // uploader's promise: the trait says so.
            unsafe { self.launch(kernel, shape, &arguments) }
        };
        match table {
            WeightView::F32(source) => float(gather::gather_f32, source.address(), source.row_stride()),
            WeightView::Bf16(source) => float(gather::gather_bf16, source.address(), source.row_stride()),
            WeightView::Q8 { codes, scales } => {
                let (code_stride, scale_stride) = (codes.row_stride(), scales.row_stride());
                let (codes, scales) = (codes.address(), scales.address());
                let arguments = arguments![
                    codes,
                    scales,
                    indices,
                    target,
                    count,
                    columns,
                    code_stride,
                    scale_stride,
                    stride
                ];
                // SAFETY: as above.
                unsafe { self.launch(gather::gather_q8, shape, &arguments) }
            }
        }
    }
}

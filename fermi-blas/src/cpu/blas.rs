//! Matrix products and weights on the CPU.

use gemm::Parallelism;

use crate::blas::check;
use crate::{Blas, Cpu, Error, Gemm, GemmBatched, Q8_GROUP, Result, View, ViewMut, WeightView};

/// Multiply-adds below which a product runs on the calling thread.
const WORTH_SHARING: usize = 1 << 18;

/// A product as pointers and strides: what the library `gemm` takes.
#[derive(Clone, Copy)]
struct Product {
    m: usize,
    k: usize,
    n: usize,
    a: *const f32,
    a_strides: (usize, usize),
    b: *const f32,
    b_strides: (usize, usize),
    c: *mut f32,
    c_row_stride: usize,
    alpha: f32,
    beta: f32,
}

// SAFETY: the pointers stand for views that outlive the product; entries of a batch write other elements.
unsafe impl Send for Product {}
// SAFETY: as above.
unsafe impl Sync for Product {}

impl Product {
    fn entry(&self, index: usize, (a, b, c): (usize, usize, usize)) -> Self {
        Self {
            a: self.a.wrapping_add(index * a),
            b: self.b.wrapping_add(index * b),
            c: self.c.wrapping_add(index * c),
            ..*self
        }
    }

    /// # Safety
    /// The pointers and strides must lie inside live buffers, and nothing else may touch C meanwhile.
    unsafe fn run(&self, parallelism: Parallelism) {
        #[cfg(feature = "testing")]
        let _library = crate::testing::allocation::InLibrary::enter();
        let stride = |stride: usize| stride as isize;
        // SAFETY: handed on from the caller.
        unsafe {
            gemm::gemm(
                self.m,
                self.n,
                self.k,
                self.c,
                1,
                stride(self.c_row_stride),
                self.beta != 0.0,
                self.a,
                stride(self.a_strides.1),
                stride(self.a_strides.0),
                self.b,
                stride(self.b_strides.1),
                stride(self.b_strides.0),
                self.beta,
                self.alpha,
                false,
                false,
                false,
                parallelism,
            );
        }
    }
}

fn strides(transposed: bool, row_stride: usize) -> (usize, usize) {
    if transposed { (1, row_stride) } else { (row_stride, 1) }
}

impl Blas for Cpu {
    fn gemm(&self, mut product: Gemm<'_, Self>) -> Result<()> {
        let (m, k, n) = product.size();
        let product = Product {
            m,
            k,
            n,
            a: product.a.view.pointer(),
            a_strides: strides(product.a.transposed, product.a.view.row_stride()),
            b: product.b.view.pointer(),
            b_strides: strides(product.b.transposed, product.b.view.row_stride()),
            c_row_stride: product.c.row_stride(),
            c: product.c.pointer(),
            alpha: product.alpha,
            beta: product.beta,
        };
        let threads = self.threads();
        // SAFETY: `Gemm::new` checked the sizes against the views, and C is an exclusive view.
        unsafe {
            if threads == 1 || m * k * n < WORTH_SHARING {
                product.run(Parallelism::None);
            } else {
                self.install(|| product.run(Parallelism::Rayon(threads)));
            }
        }
        Ok(())
    }

    fn gemm_batched(&self, product: GemmBatched<'_, Self>) -> Result<()> {
        let (m, k, n) = product.size();
        let (a, b, c) = (product.a.view, product.b.view, product.c.layout);
        let first = Product {
            m,
            k,
            n,
            a: a.buffer.pointer().wrapping_add(a.layout.part.offset),
            a_strides: strides(product.a.transposed, a.row_stride()),
            b: b.buffer.pointer().wrapping_add(b.layout.part.offset),
            b_strides: strides(product.b.transposed, b.row_stride()),
            c: product.c.buffer.pointer().wrapping_add(c.part.offset),
            c_row_stride: c.part.row_stride,
            alpha: product.alpha,
            beta: product.beta,
        };
        let batch_strides = (a.batch_stride(), b.batch_stride(), c.batch_stride);
        // SAFETY: `GemmBatched::new` checked the sizes against the views; the entries of C share no element.
        self.for_each(c.batch, c.batch * m * k * n / 16, |index| unsafe {
            first.entry(index, batch_strides).run(Parallelism::None)
        });
        Ok(())
    }

    fn gemv(&self, weight: WeightView<'_, Self>, x: View<'_, Self>, mut y: ViewMut<'_, Self>) -> Result<()> {
        check("gemv", "x rows", 1, x.rows())?;
        check("gemv", "y rows", 1, y.rows())?;
        check("gemv", "x columns", weight.columns(), x.columns())?;
        check("gemv", "y columns", weight.rows(), y.columns())?;
        let (x, rows) = (x.row(0), weight.rows());
        let y = y.reborrow().reshape(rows, 1)?;
        let y = y.share_rows();
        self.for_each(rows, rows * x.len(), |row| {
            let dot = dot_row(weight, row, x);
            // SAFETY: every row is visited once.
            unsafe { y.row_mut(0, row)[0] = dot };
        });
        Ok(())
    }

    fn dequantize(&self, weight: WeightView<'_, Self>, values: ViewMut<'_, Self>) -> Result<()> {
        check("dequantize", "rows", weight.rows(), values.rows())?;
        check("dequantize", "columns", weight.columns(), values.columns())?;
        self.for_each_row(values, |index, row| dequantize_row(weight, index, row));
        Ok(())
    }

    fn gather(
        &self,
        table: WeightView<'_, Self>,
        indices: View<'_, Self, u32>,
        values: ViewMut<'_, Self>,
    ) -> Result<()> {
        check("gather", "index rows", 1, indices.rows())?;
        check("gather", "rows", indices.columns(), values.rows())?;
        check("gather", "columns", table.columns(), values.columns())?;
        if indices.columns() == 0 {
            return Ok(());
        }
        let (indices, rows) = (indices.row(0), table.rows());
        if let Some(&index) = indices.iter().find(|&&index| index as usize >= rows) {
            return Err(Error::Index { operation: "gather", index: index as usize, rows });
        }
        self.for_each_row(values, |index, row| dequantize_row(table, indices[index] as usize, row));
        Ok(())
    }
}

fn dot_row(weight: WeightView<'_, Cpu>, row: usize, x: &[f32]) -> f32 {
    match weight {
        WeightView::F32(values) => values.row(row).iter().zip(x).map(|(w, x)| w * x).sum(),
        WeightView::Bf16(values) => values.row(row).iter().zip(x).map(|(w, x)| w.to_f32() * x).sum(),
        WeightView::Q8 { codes, scales } => {
            let groups = codes.row(row).chunks(Q8_GROUP).zip(x.chunks(Q8_GROUP)).zip(scales.row(row));
            let group = |(codes, x): (&[i8], &[f32])| -> f32 {
                codes.iter().zip(x).map(|(code, x)| f32::from(*code) * x).sum()
            };
            groups.map(|(parts, scale)| scale * group(parts)).sum()
        }
    }
}

fn dequantize_row(weight: WeightView<'_, Cpu>, index: usize, row: &mut [f32]) {
    match weight {
        WeightView::F32(values) => row.copy_from_slice(values.row(index)),
        WeightView::Bf16(values) => {
            for (y, w) in row.iter_mut().zip(values.row(index)) {
                *y = w.to_f32();
            }
        }
        WeightView::Q8 { codes, scales } => {
            let groups =
                row.chunks_mut(Q8_GROUP).zip(codes.row(index).chunks(Q8_GROUP)).zip(scales.row(index));
            for ((row, codes), scale) in groups {
                for (y, code) in row.iter_mut().zip(codes) {
                    *y = f32::from(*code) * scale;
                }
            }
        }
    }
}

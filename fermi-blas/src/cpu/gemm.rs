//! float32 matrix products, by the library `gemm`.

use gemm::Parallelism;

use super::few_rows_batched::{PIECE, Piece};
use crate::{Cpu, Gemm, GemmBatched, Result};

/// Multiply-adds below which a product runs on the calling thread.
const WORTH_SHARING: usize = 1 << 18;

/// A product as pointers and strides: what the library `gemm` takes.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) a: *const f32,
    pub(super) a_strides: (usize, usize),
    pub(super) b: *const f32,
    pub(super) b_strides: (usize, usize),
    pub(super) c: *mut f32,
    pub(super) c_row_stride: usize,
    pub(super) alpha: f32,
    pub(super) beta: f32,
}

// SAFETY: the pointers stand for views that outlive the product; entries of a batch write other elements.
unsafe impl Send for Product {}
// SAFETY: as above.
unsafe impl Sync for Product {}

impl Product {
    /// One entry of a batch, by the distances between matrices and the entries that share one.
    fn entry(&self, index: usize, [a, b, c]: [(usize, usize); 3]) -> Self {
        let at = |(stride, repeat): (usize, usize)| index / repeat * stride;
        Self {
            a: self.a.wrapping_add(at(a)),
            b: self.b.wrapping_add(at(b)),
            c: self.c.wrapping_add(at(c)),
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

pub(super) fn gemm(device: &Cpu, mut product: Gemm<'_, Cpu>) -> Result<()> {
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
    let threads = device.threads();
    // SAFETY: `Gemm::new` checked the sizes against the views, and C is an exclusive view.
    unsafe {
        if threads == 1 || m * k * n < WORTH_SHARING {
            product.run(Parallelism::None);
        } else {
            device.install(|| product.run(Parallelism::Rayon(threads)));
        }
    }
    Ok(())
}

pub(super) fn gemm_batched(device: &Cpu, product: GemmBatched<'_, Cpu>) -> Result<()> {
    let ((m, k, n), [a_repeat, b_repeat]) = (product.size(), product.repeats());
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
    let strides = [(a.batch_stride(), a_repeat), (b.batch_stride(), b_repeat), (c.batch_stride, 1)];
    if Piece::fits(&first) {
        let pieces = n.div_ceil(PIECE);
        device.for_each(c.batch * pieces, c.batch * k * n, |index| {
            let (entry, start) = (index / pieces, index % pieces * PIECE);
            let product = first.entry(entry, strides);
            device.run(Piece { product, first: start, count: PIECE.min(n - start) });
        });
        return Ok(());
    }
    // SAFETY: `GemmBatched::new` checked the sizes against the views; the entries of C share no element.
    device.for_each(c.batch, c.batch * m * k * n / 16, |index| unsafe {
        first.entry(index, strides).run(Parallelism::None)
    });
    Ok(())
}

//! Matrix products and reading weights.

use crate::{Backend, BatchView, BatchViewMut, Error, Result, View, ViewMut, WeightView};

/// An input of a product, as it lies or transposed.
#[derive(Clone, Copy, Debug)]
pub struct Operand<V> {
    pub(crate) view: V,
    pub(crate) transposed: bool,
}

impl<V> From<V> for Operand<V> {
    fn from(view: V) -> Self {
        Self { view, transposed: false }
    }
}

impl<'a, B: Backend> View<'a, B> {
    /// This matrix transposed, as an input of a product.
    pub fn t(self) -> Operand<Self> {
        Operand { view: self, transposed: true }
    }
}

impl<'a, B: Backend> BatchView<'a, B> {
    /// These matrices transposed, as an input of a product.
    pub fn t(self) -> Operand<Self> {
        Operand { view: self, transposed: true }
    }
}

/// C = alpha · A · B + beta · C.
///
/// # Shapes
/// A `[m, k]`, B `[k, n]` after transposition; C `[m, n]`; float32.
#[derive(Debug)]
pub struct Gemm<'a, B: Backend> {
    pub(crate) a: Operand<View<'a, B>>,
    pub(crate) b: Operand<View<'a, B>>,
    pub(crate) c: ViewMut<'a, B>,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
}

impl<'a, B: Backend> Gemm<'a, B> {
    /// The product with alpha = 1 and beta = 0 (C is overwritten, whatever it held).
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes do not fit together.
    pub fn new(
        a: impl Into<Operand<View<'a, B>>>,
        b: impl Into<Operand<View<'a, B>>>,
        c: ViewMut<'a, B>,
    ) -> Result<Self> {
        let (a, b) = (a.into(), b.into());
        let a_size = oriented(a.transposed, a.view.rows(), a.view.columns());
        let b_size = oriented(b.transposed, b.view.rows(), b.view.columns());
        check_product("gemm", a_size, b_size, (c.rows(), c.columns()))?;
        Ok(Self { a, b, c, alpha: 1.0, beta: 0.0 })
    }

    /// The same with the product scaled by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// The same with `beta` times the old C added; 0 ignores the old values even if they are not finite.
    #[must_use]
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }

    /// The sizes (m, k, n).
    pub fn size(&self) -> (usize, usize, usize) {
        let (m, k) = oriented(self.a.transposed, self.a.view.rows(), self.a.view.columns());
        (m, k, self.c.columns())
    }
}

/// C_i = alpha · A_i · B_i + beta · C_i for every entry of a batch.
///
/// # Shapes
/// A `[batch, m, k]`, B `[batch, k, n]` after transposition; C `[batch, m, n]`; float32. A and B may have fewer matrices, if
/// their number divides the batch: each then serves several entries in a row, as a key head serves its query heads.
#[derive(Debug)]
pub struct GemmBatched<'a, B: Backend> {
    pub(crate) a: Operand<BatchView<'a, B>>,
    pub(crate) b: Operand<BatchView<'a, B>>,
    pub(crate) c: BatchViewMut<'a, B>,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
}

impl<'a, B: Backend> GemmBatched<'a, B> {
    /// The products with alpha = 1 and beta = 0 (C is overwritten, whatever it held).
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes do not fit together.
    pub fn new(
        a: impl Into<Operand<BatchView<'a, B>>>,
        b: impl Into<Operand<BatchView<'a, B>>>,
        c: BatchViewMut<'a, B>,
    ) -> Result<Self> {
        let (a, b) = (a.into(), b.into());
        let a_size = oriented(a.transposed, a.view.rows(), a.view.columns());
        let b_size = oriented(b.transposed, b.view.rows(), b.view.columns());
        check_product("gemm_batched", a_size, b_size, (c.rows(), c.columns()))?;
        for actual in [a.view.batch(), b.view.batch()] {
            if c.batch().checked_rem(actual) != Some(0) {
                check("gemm_batched", "batch", c.batch(), actual)?;
            }
        }
        Ok(Self { a, b, c, alpha: 1.0, beta: 0.0 })
    }

    /// The same with the products scaled by `alpha`.
    #[must_use]
    pub fn alpha(self, alpha: f32) -> Self {
        Self { alpha, ..self }
    }

    /// The same with `beta` times the old C added; 0 ignores the old values even if they are not finite.
    #[must_use]
    pub fn beta(self, beta: f32) -> Self {
        Self { beta, ..self }
    }

    /// Entries of C in a row that share a matrix of A, and of B; at least 1.
    pub(crate) fn repeats(&self) -> [usize; 2] {
        let entries = |batch: usize| self.c.batch().checked_div(batch).unwrap_or(1).max(1);
        [entries(self.a.view.batch()), entries(self.b.view.batch())]
    }

    /// The sizes (m, k, n) of each product.
    pub fn size(&self) -> (usize, usize, usize) {
        let (m, k) = oriented(self.a.transposed, self.a.view.rows(), self.a.view.columns());
        (m, k, self.c.columns())
    }
}

fn oriented(transposed: bool, rows: usize, columns: usize) -> (usize, usize) {
    if transposed { (columns, rows) } else { (rows, columns) }
}

fn check_product(
    operation: &'static str,
    (m, k): (usize, usize),
    (b_rows, n): (usize, usize),
    (c_rows, c_columns): (usize, usize),
) -> Result<()> {
    check(operation, "inner", k, b_rows)?;
    check(operation, "rows", m, c_rows)?;
    check(operation, "columns", n, c_columns)
}

/// Fails with [`Error::Shape`] unless `actual` is `expected`.
pub(crate) fn check(
    operation: &'static str,
    axis: &'static str,
    expected: usize,
    actual: usize,
) -> Result<()> {
    if expected == actual { Ok(()) } else { Err(Error::Shape { operation, axis, expected, actual }) }
}

/// Matrix products, and weights read in the form that they are stored in.
pub trait Blas: Backend {
    /// Activation rows up to which [`Blas::gemv`] takes them at once; with more, a weight is better dequantized first.
    const GEMV_ROWS: usize = 1;

    /// One product.
    ///
    /// # Errors
    /// Whatever the device reports.
    fn gemm(&self, product: Gemm<'_, Self>) -> Result<()>;

    /// A batch of products.
    ///
    /// # Errors
    /// Whatever the device reports.
    fn gemm_batched(&self, product: GemmBatched<'_, Self>) -> Result<()>;

    /// y = x · Wᵀ for one activation row, or at most [`Blas::GEMV_ROWS`]: every weight is read in the type that it is stored
    /// in, and multiplied by float32 activations.
    ///
    /// # Shapes
    /// W `[out, in]`, x `[T, in]`, y `[T, out]`
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes do not fit together.
    fn gemv(&self, weight: WeightView<'_, Self>, x: View<'_, Self>, y: ViewMut<'_, Self>) -> Result<()>;

    /// The float32 values of a weight.
    ///
    /// # Shapes
    /// W `[out, in]`, `values` likewise
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes differ.
    fn dequantize(&self, weight: WeightView<'_, Self>, values: ViewMut<'_, Self>) -> Result<()>;

    /// The float32 values of some rows: `values[i] = table[indices[i]]`.
    ///
    /// # Shapes
    /// `table` `[n, d]`, `indices` `[1, m]`, `values` `[m, d]`
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes do not fit together; [`Error::Index`] on the CPU when an index is not below n (on a
    /// GPU ids are checked by whoever uploads them).
    fn gather(
        &self,
        table: WeightView<'_, Self>,
        indices: View<'_, Self, u32>,
        values: ViewMut<'_, Self>,
    ) -> Result<()>;
}

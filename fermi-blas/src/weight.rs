//! Weights: float32, bfloat16 or 8 bits with a scale per group.

use std::ops::Range;

use half::bf16;

use crate::blas::check;
use crate::{Blas, Error, Gemm, Matrix, Result, View, ViewMut};

/// Inputs that share a scale in an 8-bit weight.
pub const Q8_GROUP: usize = 64;

/// What a weight is kept as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 4 bytes a weight.
    #[default]
    F32,
    /// 2 bytes a weight: exact for a bfloat16 checkpoint.
    Bf16,
    /// 8-bit symmetric with one float32 scale per [`Q8_GROUP`] inputs: about 1.06 bytes a weight.
    Q8,
}

/// An 8-bit weight: value = code · scale of the code's group.
///
/// # Shapes
/// codes `[out, in]` in -127 ..= 127, scales `[out, ceil(in / 64)]`; the last group is short when 64 does not divide `in`.
#[derive(Debug)]
pub struct Q8<B: Blas> {
    /// The 8-bit values.
    pub codes: Matrix<B, i8>,
    /// One scale per group: the largest magnitude of the group / 127.
    pub scales: Matrix<B>,
}

impl<B: Blas> Q8<B> {
    /// An all-zero weight to be filled.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when the device has no room.
    pub fn zeros(device: &B, rows: usize, columns: usize) -> Result<Self> {
        Ok(Self {
            codes: Matrix::zeros(device, rows, columns)?,
            scales: Matrix::zeros(device, rows, columns.div_ceil(Q8_GROUP))?,
        })
    }
}

/// A weight matrix of a linear layer, as it is stored.
///
/// # Shapes
/// `[out, in]`
#[derive(Debug)]
pub enum Weight<B: Blas> {
    /// float32
    F32(Matrix<B>),
    /// bfloat16
    Bf16(Matrix<B, bf16>),
    /// 8 bits in groups
    Q8(Q8<B>),
}

impl<B: Blas> Weight<B> {
    /// Output features.
    pub fn rows(&self) -> usize {
        self.view().rows()
    }

    /// Input features.
    pub fn columns(&self) -> usize {
        self.view().columns()
    }

    /// The whole weight, to read.
    pub fn view(&self) -> WeightView<'_, B> {
        match self {
            Self::F32(values) => WeightView::F32(values.view()),
            Self::Bf16(values) => WeightView::Bf16(values.view()),
            Self::Q8(Q8 { codes, scales }) => WeightView::Q8 { codes: codes.view(), scales: scales.view() },
        }
    }

    /// float32 elements of scratch with which [`Weight::multiply`] runs in one piece: 0 for a float32 weight.
    pub fn multiply_scratch_len(&self) -> usize {
        match self {
            Self::F32(_) => 0,
            Self::Bf16(_) | Self::Q8(_) => self.rows() * self.columns(),
        }
    }

    /// y = x · Wᵀ.
    ///
    /// One row (or a few, see [`Blas::GEMV_ROWS`]) is a product with the weight as it is stored. More rows dequantize the weight into `scratch` and call the
    /// float32 product (paper, section 3.1), in pieces of as many output features as `scratch` holds.
    ///
    /// # Shapes
    /// x `[T, in]`, y `[T, out]`, scratch `[1, n]` with n at least `in`, see [`Weight::multiply_scratch_len`]
    ///
    /// # Errors
    /// [`Error::Shape`] when the sizes do not fit together.
    pub fn multiply(
        &self,
        device: &B,
        x: View<'_, B>,
        mut y: ViewMut<'_, B>,
        mut scratch: ViewMut<'_, B>,
    ) -> Result<()> {
        if (1..=B::GEMV_ROWS).contains(&x.rows()) {
            let _span = device.span("gemv");
            return device.gemv(self.view(), x, y);
        }
        if let Self::F32(values) = self {
            let _span = device.span("projection");
            return device.gemm(Gemm::new(x, values.view().t(), y)?);
        }
        let piece = scratch.columns().checked_div(self.columns()).unwrap_or(self.rows()).min(self.rows());
        if piece == 0 && self.rows() > 0 {
            let (expected, actual) = (self.columns(), scratch.columns());
            return Err(Error::Shape { operation: "multiply", axis: "scratch", expected, actual });
        }
        let mut start = 0;
        while start < self.rows() {
            let end = (start + piece).min(self.rows());
            let len = (end - start) * self.columns();
            let mut values = scratch.reborrow().column_range(0..len)?.reshape(end - start, self.columns())?;
            {
                let _span = device.span("dequantize");
                device.dequantize(self.view().row_range(start..end)?, values.reborrow())?;
            }
            let _span = device.span("projection");
            let part = y.reborrow().column_range(start..end)?;
            device.gemm(Gemm::new(x, values.as_view().t(), part)?)?;
            start = end;
        }
        Ok(())
    }
}

/// A weight matrix, to read.
///
/// # Shapes
/// `[out, in]`
#[derive(Debug)]
pub enum WeightView<'a, B: Blas> {
    /// float32
    F32(View<'a, B>),
    /// bfloat16
    Bf16(View<'a, B, bf16>),
    /// 8 bits in groups, see [`Q8`]
    Q8 {
        /// The 8-bit values.
        codes: View<'a, B, i8>,
        /// One scale per group.
        scales: View<'a, B>,
    },
}

impl<B: Blas> Clone for WeightView<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Blas> Copy for WeightView<'_, B> {}

impl<'a, B: Blas> From<View<'a, B>> for WeightView<'a, B> {
    fn from(view: View<'a, B>) -> Self {
        Self::F32(view)
    }
}

impl<B: Blas> WeightView<'_, B> {
    /// Output features.
    pub fn rows(&self) -> usize {
        match self {
            Self::F32(values) => values.rows(),
            Self::Bf16(values) => values.rows(),
            Self::Q8 { codes, .. } => codes.rows(),
        }
    }

    /// Input features.
    pub fn columns(&self) -> usize {
        match self {
            Self::F32(values) => values.columns(),
            Self::Bf16(values) => values.columns(),
            Self::Q8 { codes, .. } => codes.columns(),
        }
    }

    /// Fails unless the scales of an 8-bit weight fit its codes.
    pub(crate) fn check(&self, operation: &'static str) -> Result<()> {
        if let Self::Q8 { codes, scales } = self {
            check(operation, "scale rows", codes.rows(), scales.rows())?;
            check(operation, "scale columns", codes.columns().div_ceil(Q8_GROUP), scales.columns())?;
        }
        Ok(())
    }

    /// Some of the output features.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last one.
    pub fn row_range(self, range: Range<usize>) -> Result<Self> {
        Ok(match self {
            Self::F32(values) => Self::F32(values.row_range(range)?),
            Self::Bf16(values) => Self::Bf16(values.row_range(range)?),
            Self::Q8 { codes, scales } => {
                Self::Q8 { codes: codes.row_range(range.clone())?, scales: scales.row_range(range)? }
            }
        })
    }
}

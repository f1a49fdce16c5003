//! A buffer with a shape.

use std::fmt;
use std::ops::Range;

use crate::{Backend, Element, Result, View, ViewMut};

/// A matrix that owns its memory, row after row without gaps.
///
/// # Shapes
/// `[rows, columns]`
pub struct Matrix<B: Backend, T: Element = f32> {
    buffer: B::Buffer<T>,
    rows: usize,
    columns: usize,
}

impl<B: Backend, T: Element> fmt::Debug for Matrix<B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix<{}>[{}, {}]", std::any::type_name::<T>(), self.rows, self.columns)
    }
}

impl<B: Backend, T: Element> Matrix<B, T> {
    /// A matrix of zeros.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] when the device has no room, [`crate::Error::SizeOverflow`] past any memory's size.
    pub fn zeros(device: &B, rows: usize, columns: usize) -> Result<Self> {
        let len = rows
            .checked_mul(columns)
            .filter(|len| len.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize))
            .ok_or(crate::Error::SizeOverflow { operation: "Matrix::zeros" })?;
        Ok(Self { buffer: device.alloc(len)?, rows, columns })
    }

    /// A matrix with the given values, row after row.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when `values` is not `rows * columns` long, [`crate::Error::OutOfMemory`].
    pub fn from_slice(device: &B, rows: usize, columns: usize, values: &[T]) -> Result<Self> {
        let mut matrix = Self::zeros(device, rows, columns)?;
        device.write(values, matrix.view_mut())?;
        Ok(matrix)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The whole matrix, to read.
    pub fn view(&self) -> View<'_, B, T> {
        View::whole(&self.buffer, self.rows, self.columns)
    }

    /// The whole matrix, to write.
    pub fn view_mut(&mut self) -> ViewMut<'_, B, T> {
        ViewMut::whole(&mut self.buffer, self.rows, self.columns)
    }

    /// Some of its rows, to read.
    ///
    /// # Errors
    /// [`crate::Error::OutOfBounds`] when the range ends past the last row.
    pub fn row_range(&self, range: Range<usize>) -> Result<View<'_, B, T>> {
        self.view().row_range(range)
    }

    /// Some of its rows, to write.
    ///
    /// # Errors
    /// [`crate::Error::OutOfBounds`] when the range ends past the last row.
    pub fn row_range_mut(&mut self, range: Range<usize>) -> Result<ViewMut<'_, B, T>> {
        self.view_mut().row_range(range)
    }

    /// All values, row after row, on the host.
    ///
    /// # Errors
    /// Whatever the device's pending work failed with.
    pub fn to_vec(&self, device: &B) -> Result<Vec<T>> {
        self.view().to_vec(device)
    }
}

//! Two-dimensional views.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::{Backend, BatchView, BatchViewMut, DeviceBuffer, Element, Error, Result};

/// Where the elements of a view lie in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) offset: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row_stride: usize,
}

impl Layout {
    fn row_range(self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.rows {
            return Err(Error::OutOfBounds {
                operation: "row_range",
                needed: range.end,
                available: self.rows,
            });
        }
        let offset =
            if range.start == range.end { self.offset } else { self.offset + range.start * self.row_stride };
        Ok(Self { offset, rows: range.end - range.start, ..self })
    }

    fn column_range(self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.columns {
            return Err(Error::OutOfBounds {
                operation: "column_range",
                needed: range.end,
                available: self.columns,
            });
        }
        let offset = if range.start == range.end { self.offset } else { self.offset + range.start };
        Ok(Self { offset, columns: range.end - range.start, ..self })
    }

    fn is_contiguous(self) -> bool {
        self.row_stride == self.columns || self.rows <= 1
    }

    fn reshape(self, rows: usize, columns: usize) -> Result<Self> {
        if !self.is_contiguous() {
            let (expected, actual) = (self.columns, self.row_stride);
            return Err(Error::Shape { operation: "reshape", axis: "row stride", expected, actual });
        }
        let (expected, actual) = (self.rows * self.columns, rows.saturating_mul(columns));
        if expected != actual {
            return Err(Error::Shape { operation: "reshape", axis: "elements", expected, actual });
        }
        Ok(Self { offset: self.offset, rows, columns, row_stride: columns })
    }
}

/// A matrix inside a buffer, to read.
///
/// # Shapes
/// `[rows, columns]`; element (r, c) lies at `offset + r * row_stride + c`.
pub struct View<'a, B: Backend, T: Element = f32> {
    pub(crate) buffer: &'a B::Buffer<T>,
    pub(crate) layout: Layout,
}

impl<B: Backend, T: Element> Clone for View<'_, B, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend, T: Element> Copy for View<'_, B, T> {}

impl<B: Backend, T: Element> fmt::Debug for View<'_, B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View<{}>{:?}", std::any::type_name::<T>(), self.layout)
    }
}

impl<'a, B: Backend, T: Element> View<'a, B, T> {
    pub(crate) fn whole(buffer: &'a B::Buffer<T>, rows: usize, columns: usize) -> Self {
        debug_assert!(rows * columns <= buffer.len());
        Self { buffer, layout: Layout { offset: 0, rows, columns, row_stride: columns } }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.layout.columns
    }

    /// Distance between two rows, in elements.
    pub fn row_stride(&self) -> usize {
        self.layout.row_stride
    }

    /// Whether the rows follow one another without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Some of the rows.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last row.
    pub fn row_range(self, range: Range<usize>) -> Result<Self> {
        Ok(Self { layout: self.layout.row_range(range)?, ..self })
    }

    /// Some of the columns.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last column.
    pub fn column_range(self, range: Range<usize>) -> Result<Self> {
        Ok(Self { layout: self.layout.column_range(range)?, ..self })
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] when the rows have gaps or the number of elements differs.
    pub fn reshape(self, rows: usize, columns: usize) -> Result<Self> {
        Ok(Self { layout: self.layout.reshape(rows, columns)?, ..self })
    }

    /// The columns cut into `heads` equal parts, one a batch entry: `[T, H * D]` as `H` matrices `[T, D]`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the columns do not divide.
    pub fn heads(self, heads: usize) -> Result<BatchView<'a, B, T>> {
        BatchView::heads(self, heads)
    }

    /// The rows cut into `batch` equal parts: `[N * R, C]` as `N` matrices `[R, C]`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the rows do not divide.
    pub fn blocks(self, batch: usize) -> Result<BatchView<'a, B, T>> {
        BatchView::blocks(self, batch)
    }

    /// This one matrix as each of `batch` entries.
    pub fn broadcast(self, batch: usize) -> BatchView<'a, B, T> {
        BatchView::broadcast(self, batch)
    }

    /// All values, row after row, on the host.
    ///
    /// # Errors
    /// Whatever the device's pending work failed with.
    pub fn to_vec(self, device: &B) -> Result<Vec<T>> {
        let mut values = vec![T::default(); self.rows() * self.columns()];
        device.read(self, &mut values)?;
        Ok(values)
    }
}

/// A matrix inside a buffer, to write; no other view reaches its elements.
///
/// # Shapes
/// `[rows, columns]`; element (r, c) lies at `offset + r * row_stride + c`.
pub struct ViewMut<'a, B: Backend, T: Element = f32> {
    pub(crate) buffer: &'a B::Buffer<T>,
    pub(crate) layout: Layout,
    exclusive: PhantomData<&'a mut T>,
}

impl<B: Backend, T: Element> fmt::Debug for ViewMut<'_, B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewMut<{}>{:?}", std::any::type_name::<T>(), self.layout)
    }
}

impl<'a, B: Backend, T: Element> ViewMut<'a, B, T> {
    pub(crate) fn whole(buffer: &'a mut B::Buffer<T>, rows: usize, columns: usize) -> Self {
        debug_assert!(rows * columns <= buffer.len());
        let layout = Layout { offset: 0, rows, columns, row_stride: columns };
        Self { buffer, layout, exclusive: PhantomData }
    }

    pub(crate) fn from_parts(buffer: &'a B::Buffer<T>, layout: Layout) -> Self {
        Self { buffer, layout, exclusive: PhantomData }
    }

    fn with(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.layout.columns
    }

    /// Distance between two rows, in elements.
    pub fn row_stride(&self) -> usize {
        self.layout.row_stride
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_, B, T> {
        ViewMut { buffer: self.buffer, layout: self.layout, exclusive: PhantomData }
    }

    /// The same elements, to read.
    pub fn as_view(&self) -> View<'_, B, T> {
        View { buffer: self.buffer, layout: self.layout }
    }

    /// The same elements, to read from now on.
    pub fn into_view(self) -> View<'a, B, T> {
        View { buffer: self.buffer, layout: self.layout }
    }

    /// Some of the rows.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last row.
    pub fn row_range(self, range: Range<usize>) -> Result<Self> {
        let layout = self.layout.row_range(range)?;
        Ok(self.with(layout))
    }

    /// Some of the columns.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last column.
    pub fn column_range(self, range: Range<usize>) -> Result<Self> {
        let layout = self.layout.column_range(range)?;
        Ok(self.with(layout))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`Error::Shape`] when the rows have gaps or the number of elements differs.
    pub fn reshape(self, rows: usize, columns: usize) -> Result<Self> {
        let layout = self.layout.reshape(rows, columns)?;
        Ok(self.with(layout))
    }

    /// Two disjoint parts: the first `rows` rows and the rest.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when there are fewer rows.
    pub fn split_rows_mut(self, rows: usize) -> Result<(Self, Self)> {
        let (head, tail) = (self.layout.row_range(0..rows)?, self.layout.row_range(rows..self.layout.rows)?);
        let buffer = self.buffer;
        Ok((self.with(head), Self { buffer, layout: tail, exclusive: PhantomData }))
    }

    /// Two disjoint parts: the first `columns` columns and the rest.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when there are fewer columns.
    pub fn split_columns_mut(self, columns: usize) -> Result<(Self, Self)> {
        let head = self.layout.column_range(0..columns)?;
        let tail = self.layout.column_range(columns..self.layout.columns)?;
        let buffer = self.buffer;
        Ok((self.with(head), Self { buffer, layout: tail, exclusive: PhantomData }))
    }

    /// The columns cut into `heads` equal parts, one a batch entry: `[T, H * D]` as `H` matrices `[T, D]`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the columns do not divide.
    pub fn heads(self, heads: usize) -> Result<BatchViewMut<'a, B, T>> {
        BatchViewMut::heads(self, heads)
    }

    /// The rows cut into `batch` equal parts: `[N * R, C]` as `N` matrices `[R, C]`.
    ///
    /// # Errors
    /// [`Error::Shape`] when the rows do not divide.
    pub fn blocks(self, batch: usize) -> Result<BatchViewMut<'a, B, T>> {
        BatchViewMut::blocks(self, batch)
    }
}

//! Several matrices of one shape at a fixed distance in one buffer.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use super::matrix::Layout;
use crate::{Backend, Element, Error, Result, View, ViewMut};

/// Where the matrices of a batch lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchLayout {
    pub(crate) batch: usize,
    pub(crate) batch_stride: usize,
    pub(crate) part: Layout,
}

impl BatchLayout {
    fn heads(whole: Layout, heads: usize) -> Result<Self> {
        let columns = divide("heads", "columns", whole.columns, heads)?;
        Ok(Self { batch: heads, batch_stride: columns, part: Layout { columns, ..whole } })
    }

    fn blocks(whole: Layout, batch: usize) -> Result<Self> {
        let rows = divide("blocks", "rows", whole.rows, batch)?;
        Ok(Self { batch, batch_stride: rows * whole.row_stride, part: Layout { rows, ..whole } })
    }

    fn entry(self, index: usize) -> Result<Layout> {
        if index >= self.batch {
            return Err(Error::OutOfBounds { operation: "entry", needed: index + 1, available: self.batch });
        }
        Ok(Layout { offset: self.part.offset + index * self.batch_stride, ..self.part })
    }

    fn range(self, range: Range<usize>) -> Result<Self> {
        if range.start > range.end || range.end > self.batch {
            return Err(Error::OutOfBounds { operation: "range", needed: range.end, available: self.batch });
        }
        let offset =
            if range.start == range.end { self.part.offset } else { self.entry(range.start)?.offset };
        Ok(Self { batch: range.end - range.start, part: Layout { offset, ..self.part }, ..self })
    }

    /// Whether no element belongs to two entries: the entries lie side by side within a row, or one behind the other.
    fn is_disjoint(self) -> bool {
        let Layout { rows, columns, row_stride, .. } = self.part;
        if self.batch <= 1 || rows == 0 || columns == 0 {
            return true;
        }
        let beside = self.batch_stride >= columns
            && (rows == 1 || (self.batch - 1) * self.batch_stride + columns <= row_stride);
        let behind = self.batch_stride >= (rows - 1) * row_stride + columns;
        beside || behind
    }
}

fn divide(operation: &'static str, axis: &'static str, size: usize, parts: usize) -> Result<usize> {
    match size.checked_rem(parts) {
        Some(0) => Ok(size / parts),
        _ => {
            Err(Error::Shape { operation, axis, expected: size.next_multiple_of(parts.max(1)), actual: size })
        }
    }
}

/// `batch` matrices of one shape inside a buffer, to read; they may overlap (a stride of 0 repeats one matrix).
///
/// # Shapes
/// `[batch, rows, columns]`
pub struct BatchView<'a, B: Backend, T: Element = f32> {
    pub(crate) buffer: &'a B::Buffer<T>,
    pub(crate) layout: BatchLayout,
}

impl<B: Backend, T: Element> Clone for BatchView<'_, B, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend, T: Element> Copy for BatchView<'_, B, T> {}

impl<B: Backend, T: Element> fmt::Debug for BatchView<'_, B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchView<{}>{:?}", std::any::type_name::<T>(), self.layout)
    }
}

impl<'a, B: Backend, T: Element> BatchView<'a, B, T> {
    pub(crate) fn heads(view: View<'a, B, T>, heads: usize) -> Result<Self> {
        Ok(Self { buffer: view.buffer, layout: BatchLayout::heads(view.layout, heads)? })
    }

    pub(crate) fn blocks(view: View<'a, B, T>, batch: usize) -> Result<Self> {
        Ok(Self { buffer: view.buffer, layout: BatchLayout::blocks(view.layout, batch)? })
    }

    pub(crate) fn broadcast(view: View<'a, B, T>, batch: usize) -> Self {
        Self { buffer: view.buffer, layout: BatchLayout { batch, batch_stride: 0, part: view.layout } }
    }

    /// Number of matrices.
    pub fn batch(&self) -> usize {
        self.layout.batch
    }

    /// Distance between two matrices, in elements.
    pub fn batch_stride(&self) -> usize {
        self.layout.batch_stride
    }

    /// Rows of each matrix.
    pub fn rows(&self) -> usize {
        self.layout.part.rows
    }

    /// Columns of each matrix.
    pub fn columns(&self) -> usize {
        self.layout.part.columns
    }

    /// Distance between two rows of a matrix, in elements.
    pub fn row_stride(&self) -> usize {
        self.layout.part.row_stride
    }

    /// One of the matrices.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when there are not so many.
    pub fn entry(self, index: usize) -> Result<View<'a, B, T>> {
        Ok(View { buffer: self.buffer, layout: self.layout.entry(index)? })
    }

    /// Some of the matrices.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when there are not so many.
    pub fn range(self, range: Range<usize>) -> Result<Self> {
        Ok(Self { layout: self.layout.range(range)?, ..self })
    }

    /// The same columns of every matrix.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last column.
    pub fn column_range(self, range: Range<usize>) -> Result<Self> {
        let part = View::<B, T> { buffer: self.buffer, layout: self.layout.part }.column_range(range)?.layout;
        Ok(Self { layout: BatchLayout { part, ..self.layout }, ..self })
    }
}

/// `batch` matrices of one shape inside a buffer, to write; no element belongs to two of them.
///
/// # Shapes
/// `[batch, rows, columns]`
pub struct BatchViewMut<'a, B: Backend, T: Element = f32> {
    pub(crate) buffer: &'a B::Buffer<T>,
    pub(crate) layout: BatchLayout,
    exclusive: PhantomData<&'a mut T>,
}

impl<B: Backend, T: Element> fmt::Debug for BatchViewMut<'_, B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchViewMut<{}>{:?}", std::any::type_name::<T>(), self.layout)
    }
}

impl<'a, B: Backend, T: Element> BatchViewMut<'a, B, T> {
    fn new(operation: &'static str, buffer: &'a B::Buffer<T>, layout: BatchLayout) -> Result<Self> {
        if !layout.is_disjoint() {
            let BatchLayout { batch_stride, part: Layout { rows, columns, .. }, .. } = layout;
            return Err(Error::Overlap { operation, batch_stride, rows, columns });
        }
        Ok(Self { buffer, layout, exclusive: PhantomData })
    }

    pub(crate) fn heads(view: ViewMut<'a, B, T>, heads: usize) -> Result<Self> {
        Self::new("heads", view.buffer, BatchLayout::heads(view.layout, heads)?)
    }

    pub(crate) fn blocks(view: ViewMut<'a, B, T>, batch: usize) -> Result<Self> {
        Self::new("blocks", view.buffer, BatchLayout::blocks(view.layout, batch)?)
    }

    /// Number of matrices.
    pub fn batch(&self) -> usize {
        self.layout.batch
    }

    /// Distance between two matrices, in elements.
    pub fn batch_stride(&self) -> usize {
        self.layout.batch_stride
    }

    /// Rows of each matrix.
    pub fn rows(&self) -> usize {
        self.layout.part.rows
    }

    /// Columns of each matrix.
    pub fn columns(&self) -> usize {
        self.layout.part.columns
    }

    /// Distance between two rows of a matrix, in elements.
    pub fn row_stride(&self) -> usize {
        self.layout.part.row_stride
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> BatchViewMut<'_, B, T> {
        BatchViewMut { buffer: self.buffer, layout: self.layout, exclusive: PhantomData }
    }

    /// The same elements, to read.
    pub fn as_view(&self) -> BatchView<'_, B, T> {
        BatchView { buffer: self.buffer, layout: self.layout }
    }

    /// One of the matrices.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when there are not so many.
    pub fn entry(self, index: usize) -> Result<ViewMut<'a, B, T>> {
        let layout = self.layout.entry(index)?;
        Ok(ViewMut::from_parts(self.buffer, layout))
    }

    /// Some of the matrices.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when there are not so many.
    pub fn range(self, range: Range<usize>) -> Result<Self> {
        let layout = self.layout.range(range)?;
        Ok(Self { layout, ..self })
    }

    /// The same columns of every matrix.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] when the range ends past the last column.
    pub fn column_range(self, range: Range<usize>) -> Result<Self> {
        let part = View::<B, T> { buffer: self.buffer, layout: self.layout.part }.column_range(range)?.layout;
        Ok(Self { layout: BatchLayout { part, ..self.layout }, ..self })
    }
}

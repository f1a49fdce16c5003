//! Work shared among the threads of the pool.

use std::marker::PhantomData;

use rayon::prelude::*;

use crate::{BatchViewMut, Cpu, Element, ViewMut};

/// Elements below which handing work to other threads costs more than it saves.
const WORTH_SHARING: usize = 1 << 14;

/// The rows of a writable view (or of a batch of them), handed to several threads that each write other elements.
#[derive(Debug)]
pub struct SharedRows<'a, T> {
    start: *mut T,
    rows: usize,
    columns: usize,
    row_stride: usize,
    batch: usize,
    batch_stride: usize,
    exclusive: PhantomData<&'a mut T>,
}

// SAFETY: the pointer stands for an exclusive view; `row_mut` asks its callers for disjoint elements.
unsafe impl<T: Element> Send for SharedRows<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for SharedRows<'_, T> {}

impl<T: Element> SharedRows<'_, T> {
    /// Rows of each matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of each matrix.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row of one matrix of the batch (entry 0 of a plain view).
    ///
    /// # Panics
    /// When there is no such row.
    ///
    /// # Safety
    /// While the slice lives, nobody else may hold a slice of the same row of the same entry.
    #[allow(clippy::mut_from_ref, reason = "exclusiveness is the caller's promise")]
    pub unsafe fn row_mut(&self, entry: usize, row: usize) -> &mut [T] {
        assert!(entry < self.batch && row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: the view lies inside its buffer; the caller promises exclusiveness.
        unsafe {
            let start = self.start.add(entry * self.batch_stride + row * self.row_stride);
            std::slice::from_raw_parts_mut(start, self.columns)
        }
    }
}

impl<T: Element> SharedRows<'_, T> {
    /// Writes one element of one matrix of the batch.
    ///
    /// # Safety
    /// The element exists, and nobody else may reach it meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, entry: usize, row: usize, column: usize, value: T) {
        debug_assert!(entry < self.batch && row < self.rows && column < self.columns);
        // SAFETY: the view lies inside its buffer; the caller promises the rest.
        unsafe {
            self.start.add(entry * self.batch_stride + row * self.row_stride + column).write(value);
        }
    }
}

impl<'a, T: Element> ViewMut<'a, Cpu, T> {
    /// This view's rows, to be written by several threads.
    pub fn share_rows(mut self) -> SharedRows<'a, T> {
        SharedRows {
            start: self.pointer(),
            rows: self.layout.rows,
            columns: self.layout.columns,
            row_stride: self.layout.row_stride,
            batch: 1,
            batch_stride: 0,
            exclusive: PhantomData,
        }
    }
}

impl<'a, T: Element> BatchViewMut<'a, Cpu, T> {
    /// These views' rows, to be written by several threads.
    pub fn share_rows(self) -> SharedRows<'a, T> {
        let part = self.layout.part;
        SharedRows {
            start: self.buffer.pointer().wrapping_add(part.offset),
            rows: part.rows,
            columns: part.columns,
            row_stride: part.row_stride,
            batch: self.layout.batch,
            batch_stride: self.layout.batch_stride,
            exclusive: PhantomData,
        }
    }
}

impl Cpu {
    /// Calls `work(i)` for every i below `count`, on several threads when `elements` (the elements touched in all) make
    /// that worth it. Nothing is allocated.
    pub fn for_each(&self, count: usize, elements: usize, work: impl Fn(usize) + Send + Sync) {
        if count < 2 || elements < WORTH_SHARING || self.threads() == 1 {
            (0..count).for_each(work);
        } else {
            let piece = count.div_ceil(4 * self.threads());
            self.install(|| (0..count).into_par_iter().with_min_len(piece).for_each(work));
        }
    }

    /// Calls `work(i, row)` for every row of `target`, on several threads when it is large.
    pub fn for_each_row<T: Element>(
        &self,
        target: ViewMut<'_, Self, T>,
        work: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        let elements = target.rows() * target.columns();
        let rows = target.share_rows();
        self.for_each(rows.rows(), elements, |index| {
            // SAFETY: every index is visited once.
            work(index, unsafe { rows.row_mut(0, index) });
        });
    }

    /// Calls `work(i, row)` for row i of every matrix of a batch, on several threads when they are large.
    pub fn for_each_batch_row<T: Element>(
        &self,
        target: BatchViewMut<'_, Self, T>,
        work: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        let batch = target.batch();
        let count = batch * target.rows();
        let elements = count * target.columns();
        let rows = target.share_rows();
        self.for_each(count, elements, |index| {
            // SAFETY: every (entry, row) is visited once.
            work(index / batch, unsafe { rows.row_mut(index % batch, index / batch) });
        });
    }

    /// Calls `work(i, chunk)` for every `chunk_len` values of a slice; `elements` as in [`Cpu::for_each`].
    pub(crate) fn for_each_chunk<T: Send>(
        &self,
        values: &mut [T],
        chunk_len: usize,
        elements: usize,
        work: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        if values.len() <= chunk_len || elements < WORTH_SHARING || self.threads() == 1 {
            values.chunks_mut(chunk_len).enumerate().for_each(|(index, chunk)| work(index, chunk));
        } else {
            let chunks = values.par_chunks_mut(chunk_len).enumerate();
            self.install(|| chunks.for_each(|(index, chunk)| work(index, chunk)));
        }
    }
}

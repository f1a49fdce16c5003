//! Memory of the CPU backend.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Cpu, DeviceBuffer, Element, Error, MemoryUse, Result, View, ViewMut};

/// Buffers start on a cache line, which is also the width of the widest vector register.
const ALIGNMENT: usize = 64;

/// Bytes held by the buffers of one device.
#[derive(Debug, Default)]
pub(crate) struct Account {
    in_use: AtomicUsize,
    peak: AtomicUsize,
}

impl Account {
    fn add(&self, bytes: usize) {
        let in_use = self.in_use.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(in_use, Ordering::Relaxed);
    }

    fn remove(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn memory(&self) -> MemoryUse {
        MemoryUse { in_use: self.in_use.load(Ordering::Relaxed), peak: self.peak.load(Ordering::Relaxed) }
    }
}

/// A run of elements in main memory, aligned to 64 bytes.
///
/// Its elements are reached through views only, which keep writers and readers apart.
pub struct CpuBuffer<T> {
    start: NonNull<T>,
    len: usize,
    account: Arc<Account>,
}

// SAFETY: the buffer owns plain values; shared access to them is ruled by the views' borrows.
unsafe impl<T: Element> Send for CpuBuffer<T> {}
// SAFETY: through `&CpuBuffer` alone nothing can be read or written; see `View` and `ViewMut`.
unsafe impl<T: Element> Sync for CpuBuffer<T> {}

impl<T> fmt::Debug for CpuBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuBuffer<{}>[{}]", std::any::type_name::<T>(), self.len)
    }
}

impl<T: Element> DeviceBuffer for CpuBuffer<T> {
    fn len(&self) -> usize {
        self.len
    }
}

impl<T: Element> CpuBuffer<T> {
    pub(crate) fn zeros(len: usize, account: &Arc<Account>) -> Result<Self> {
        let account = Arc::clone(account);
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len, account });
        }
        let bytes = len.saturating_mul(size_of::<T>());
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| Error::OutOfMemory { bytes })?;
        // SAFETY: the layout's size is not 0. All-zero bytes are a value of every `Element` (they are `Pod`).
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start.cast::<T>()).ok_or(Error::OutOfMemory { bytes })?;
        account.add(bytes);
        Ok(Self { start, len, account })
    }

    pub(crate) fn pointer(&self) -> *mut T {
        self.start.as_ptr()
    }
}

impl<T> Drop for CpuBuffer<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if bytes > 0 {
            // SAFETY: `zeros` allocated this with the same size and alignment, which are valid together.
            unsafe {
                dealloc(self.start.as_ptr().cast(), Layout::from_size_align_unchecked(bytes, ALIGNMENT))
            };
            self.account.remove(bytes);
        }
    }
}

impl<'a, T: Element> View<'a, Cpu, T> {
    /// The first element.
    pub(crate) fn pointer(&self) -> *const T {
        self.buffer.pointer().wrapping_add(self.layout.offset)
    }

    /// One row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, index: usize) -> &'a [T] {
        assert!(index < self.layout.rows, "row {index} of {}", self.layout.rows);
        // SAFETY: views lie inside their buffer, which is alive for 'a; no exclusive view to these elements exists.
        unsafe {
            let start = self.pointer().add(index * self.layout.row_stride);
            std::slice::from_raw_parts(start, self.layout.columns)
        }
    }
}

impl<T: Element> ViewMut<'_, Cpu, T> {
    /// The first element.
    pub(crate) fn pointer(&mut self) -> *mut T {
        self.buffer.pointer().wrapping_add(self.layout.offset)
    }

    /// One row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, index: usize) -> &mut [T] {
        assert!(index < self.layout.rows, "row {index} of {}", self.layout.rows);
        // SAFETY: views lie inside their buffer, which outlives this borrow; this view is the only way to its elements.
        unsafe {
            let start = self.pointer().add(index * self.layout.row_stride);
            std::slice::from_raw_parts_mut(start, self.layout.columns)
        }
    }
}

//! Memory of the CPU backend.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::account::Account;
use crate::{Cpu, DeviceBuffer, Element, Error, Result, View, ViewMut};

/// Buffers start on a cache line, which is also the width of the widest vector register.
const ALIGNMENT: usize = 64;

/// A huge page. Weights are read from end to end once a token; with pages of 4 KiB that runs at half the speed.
const HUGE_PAGE: usize = 2 << 20;

/// How `bytes` are allocated: large buffers as whole huge pages, unless that would add more than a quarter.
fn layout(bytes: usize) -> Result<Layout> {
    let whole = bytes.next_multiple_of(HUGE_PAGE);
    let huge = bytes >= HUGE_PAGE && whole - bytes <= bytes / 4;
    let (size, alignment) = if huge { (whole, HUGE_PAGE) } else { (bytes, ALIGNMENT) };
    Layout::from_size_align(size, alignment).map_err(|_| Error::OutOfMemory { bytes })
}

/// Zeroed memory; the system is asked for huge pages before it is touched.
///
/// # Safety
/// The layout's size is not 0.
unsafe fn allocate(layout: Layout) -> *mut u8 {
    if layout.align() < HUGE_PAGE {
        // SAFETY: as the caller promises.
        return unsafe { alloc_zeroed(layout) };
    }
    // SAFETY: as the caller promises; the advice and the zeros cover just what was allocated.
    unsafe {
        let start = alloc(layout);
        if !start.is_null() {
            // Advice that is not followed costs speed only.
            #[cfg(target_os = "linux")]
            libc::madvise(start.cast(), layout.size(), libc::MADV_HUGEPAGE);
            start.write_bytes(0, layout.size());
        }
        start
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
        if bytes > isize::MAX as usize - HUGE_PAGE {
            return Err(Error::OutOfMemory { bytes });
        }
        let layout = layout(bytes)?;
        account.add(bytes)?;
        // SAFETY: the layout's size is not 0. All-zero bytes are a value of every `Element` (they are `Pod`).
        let start = unsafe { allocate(layout) };
        let Some(start) = NonNull::new(start.cast::<T>()) else {
            account.remove(bytes);
            return Err(Error::OutOfMemory { bytes });
        };
        Ok(Self { start, len, account })
    }

    pub(crate) fn pointer(&self) -> *mut T {
        self.start.as_ptr()
    }
}

impl<T> Drop for CpuBuffer<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if let (true, Ok(layout)) = (bytes > 0, layout(bytes)) {
            // SAFETY: `zeros` allocated this with the same layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
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

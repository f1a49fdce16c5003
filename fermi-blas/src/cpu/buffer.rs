//! Memory of the CPU backend.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::region::{ALIGNMENT, Region, Regions};
use crate::account::Account;
use crate::{Cpu, DeviceBuffer, Element, Error, Result, View, ViewMut};

/// Buffers of at least so many bytes lie in huge pages.
const SHARED_REGION: usize = 16 << 10;

/// The memory of one device.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(super) account: Account,
    regions: Regions,
}

/// A run of elements in main memory, aligned to 64 bytes.
///
/// Its elements are reached through views only, which keep writers and readers apart.
pub struct CpuBuffer<T> {
    start: NonNull<T>,
    len: usize,
    /// Where it lies; else it was allocated alone.
    region: Option<Arc<Region>>,
    memory: Arc<Memory>,
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
    pub(crate) fn zeros(len: usize, memory: &Arc<Memory>) -> Result<Self> {
        let memory = Arc::clone(memory);
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len, region: None, memory });
        }
        let layout = Layout::array::<T>(len).and_then(|layout| layout.align_to(ALIGNMENT));
        let layout = layout.map_err(|_| Error::OutOfMemory { bytes: len.saturating_mul(size_of::<T>()) })?;
        let bytes = layout.size();
        memory.account.add(bytes)?;
        match allocate(layout, &memory.regions) {
            // All-zero bytes are a value of every `Element` (they are `Pod`).
            Ok((start, region)) => Ok(Self { start: start.cast(), len, region, memory }),
            Err(error) => {
                memory.account.remove(bytes);
                Err(error)
            }
        }
    }

    pub(crate) fn pointer(&self) -> *mut T {
        self.start.as_ptr()
    }
}

/// Zeroed memory, its size not 0.
fn allocate(layout: Layout, regions: &Regions) -> Result<(NonNull<u8>, Option<Arc<Region>>)> {
    let bytes = layout.size();
    if bytes < SHARED_REGION {
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Error::OutOfMemory { bytes })?;
        return Ok((start, None));
    }
    let (start, region) = regions.take(bytes)?;
    // SAFETY: the room was just taken.
    unsafe { start.write_bytes(0, bytes) };
    Ok((start, Some(region)))
}

impl<T> Drop for CpuBuffer<T> {
    fn drop(&mut self) {
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return;
        }
        if let (None, Ok(layout)) =
            (&self.region, Layout::from_size_align(bytes, ALIGNMENT.max(align_of::<T>())))
        {
            // SAFETY: `allocate` made this with the same layout, alone.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) };
        }
        self.memory.account.remove(bytes);
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

//! An allocator that counts, to prove that a pass allocates nothing.
//!
//! ```
//! use fermi_blas::testing::allocation::{CountingAllocator, count};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let (values, allocations) = count(|| vec![0u8; 100]);
//! assert_eq!((values.len(), allocations.own), (100, 1));
//! ```
//!
//! The counts are the process's: a test that uses them stands alone in its file.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static OWN: AtomicUsize = AtomicUsize::new(0);
static LIBRARY: AtomicUsize = AtomicUsize::new(0);
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static IN_LIBRARY: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// What was allocated while some work ran, on all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// Allocations by our own code.
    pub own: usize,
    /// Allocations inside the matrix-product library, for its packed copies of the operands.
    pub library: usize,
    /// The most bytes held at once, above those held at the start.
    pub peak_bytes: usize,
    /// Bytes held at the end, above those held at the start.
    pub kept_bytes: usize,
}

/// Runs `work` and counts what is allocated meanwhile.
pub fn count<R>(work: impl FnOnce() -> R) -> (R, Allocations) {
    let start = IN_USE.load(Ordering::SeqCst);
    PEAK.store(start, Ordering::SeqCst);
    let (own, library) = (OWN.load(Ordering::SeqCst), LIBRARY.load(Ordering::SeqCst));
    let result = work();
    let allocations = Allocations {
        own: OWN.load(Ordering::SeqCst) - own,
        library: LIBRARY.load(Ordering::SeqCst) - library,
        peak_bytes: PEAK.load(Ordering::SeqCst).saturating_sub(start),
        kept_bytes: IN_USE.load(Ordering::SeqCst).saturating_sub(start),
    };
    (result, allocations)
}

/// While it lives, allocations on any thread are booked as the library's.
#[derive(Debug)]
pub(crate) struct InLibrary(());

impl InLibrary {
    pub(crate) fn enter() -> Self {
        IN_LIBRARY.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for InLibrary {
    fn drop(&mut self) {
        IN_LIBRARY.fetch_sub(1, Ordering::SeqCst);
    }
}

fn add(bytes: usize) {
    let counter = if IN_LIBRARY.load(Ordering::SeqCst) > 0 { &LIBRARY } else { &OWN };
    counter.fetch_add(1, Ordering::SeqCst);
    let in_use = IN_USE.fetch_add(bytes, Ordering::SeqCst) + bytes;
    PEAK.fetch_max(in_use, Ordering::SeqCst);
}

fn remove(bytes: usize) {
    IN_USE.fetch_sub(bytes, Ordering::SeqCst);
}

// SAFETY: every call is handed on to the system's allocator unchanged; the counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: handed on from the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: handed on from the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: handed on from the caller.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        remove(layout.size());
        // SAFETY: handed on from the caller.
        unsafe { System.realloc(start, layout, size) }
    }
}

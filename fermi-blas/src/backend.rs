//! The one seam between model code and a device.

use std::fmt::Debug;

use half::bf16;

use crate::{Result, View, ViewMut};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::bf16 {}
    impl Sealed for i8 {}
    impl Sealed for u32 {}
}

/// A value that device buffers hold: `f32` activations, `bf16` and `i8` weights, `u32` ids.
pub trait Element: sealed::Sealed + bytemuck::Pod + Debug + Default + Send + Sync {}

impl Element for f32 {}
impl Element for bf16 {}
impl Element for i8 {}
impl Element for u32 {}

/// A run of elements on a device.
pub trait DeviceBuffer: Debug + Send + Sync + 'static {
    /// Elements that it holds.
    fn len(&self) -> usize;

    /// Whether it holds nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes of buffers on a device, as its allocator counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes held now.
    pub in_use: usize,
    /// The most that was ever held at once.
    pub peak: usize,
}

/// A device: it owns buffers and moves values in and out of them.
///
/// A handle is cheap to clone; clones stand for the same device. [`crate::Blas`] and [`crate::RowOps`] compute on top of
/// it, and a crate with kernels of its own adds a trait of its own.
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// Memory for `T` on this device, released when dropped.
    type Buffer<T: Element>: DeviceBuffer;

    /// Time that passes until it is dropped is booked under a component's name, if the device keeps a profile.
    type Span: Debug;

    /// A new buffer of `len` zeros.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`] when the device has no room.
    fn alloc<T: Element>(&self, len: usize) -> Result<Self::Buffer<T>>;

    /// Fills `target` with `source`, given row after row without gaps.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the lengths differ.
    fn write<T: Element>(&self, source: &[T], target: ViewMut<'_, Self, T>) -> Result<()>;

    /// Reads `source` into `target`, row after row without gaps; waits until the values are there.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the lengths differ.
    fn read<T: Element>(&self, source: View<'_, Self, T>, target: &mut [T]) -> Result<()>;

    /// Copies one view to another of the same shape.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the shapes differ.
    fn copy<T: Element>(&self, source: View<'_, Self, T>, target: ViewMut<'_, Self, T>) -> Result<()>;

    /// Waits until all work handed to the device is done.
    ///
    /// # Errors
    /// Whatever that work failed with.
    fn synchronize(&self) -> Result<()>;

    /// Runs a whole pass of a model in one go, so that a device may get ready once for all of its operations: the CPU
    /// moves onto its thread pool, where handing out work wakes nobody and allocates nothing.
    fn run_pass<R: Send>(&self, pass: impl FnOnce() -> R + Send) -> R {
        pass()
    }

    /// Bytes that this device's buffers hold.
    fn memory(&self) -> MemoryUse;

    /// Starts to book time under `component`.
    fn span(&self, component: &'static str) -> Self::Span;
}

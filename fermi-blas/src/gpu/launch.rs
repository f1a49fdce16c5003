//! The arithmetic of launches: within Fermi's limits, the same on a card and in the emulation.

use crate::{BatchView, BatchViewMut, Element, Error, Result, View, ViewMut};

use super::{Gpu, Kernel, Runtime};

/// Blocks of a grid at most: Fermi's limit for each dimension. Kernels walk over more work in steps of the grid.
pub const MOST_BLOCKS: usize = 65_535;

/// Threads of a block at most.
const MOST_THREADS: u32 = 1_024;

/// Bytes of shared memory of a block at most.
const MOST_SHARED: u32 = 48 << 10;

/// How many blocks of how many threads run a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks, 1 to [`MOST_BLOCKS`].
    pub blocks: u32,
    /// Threads of a block, 1 to 1,024.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Shape {
    /// One block for each of `items`, as far as the limit goes; the kernel walks over the rest.
    pub fn blocks(items: usize, threads: u32) -> Self {
        Self { blocks: items.clamp(1, MOST_BLOCKS) as u32, threads, shared: 0 }
    }

    /// One thread for each of `items`, as far as the limit goes; the kernel walks over the rest.
    pub fn threads(items: usize, threads: u32) -> Self {
        Self::blocks(items.div_ceil(threads as usize), threads)
    }

    /// The same with dynamic shared memory.
    #[must_use]
    pub fn shared(self, bytes: usize) -> Self {
        Self { shared: bytes.min(u32::MAX as usize) as u32, ..self }
    }

    /// Fails with [`Error::Launch`] outside the limits of the oldest card.
    pub(crate) fn check(self, kernel: Kernel) -> Result<()> {
        let Self { blocks, threads, shared } = self;
        let limits = [
            ("blocks", blocks, MOST_BLOCKS as u32),
            ("threads", threads, MOST_THREADS),
            ("bytes of shared memory", shared, MOST_SHARED),
        ];
        for (limit, actual, most) in limits {
            if actual > most {
                return Err(Error::Launch { kernel: kernel.name(), limit, most, actual });
            }
        }
        Ok(())
    }
}

/// A value handed to a kernel: an address, a 64-bit size or a 32-bit number, in the low bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument(pub(crate) u64);

impl From<u64> for Argument {
    fn from(value: u64) -> Self {
        Self(value)
    }
}

impl From<usize> for Argument {
    fn from(value: usize) -> Self {
        Self(value as u64)
    }
}

impl From<u32> for Argument {
    fn from(value: u32) -> Self {
        Self(u64::from(value))
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Self {
        Self(u64::from(value.to_bits()))
    }
}

impl<R: Runtime, T: Element> View<'_, Gpu<R>, T> {
    /// The device address of the first element.
    pub fn address(&self) -> u64 {
        self.buffer.address() + (self.layout.offset * size_of::<T>()) as u64
    }
}

impl<R: Runtime, T: Element> ViewMut<'_, Gpu<R>, T> {
    /// The device address of the first element.
    pub fn address(&mut self) -> u64 {
        self.as_view().address()
    }
}

impl<R: Runtime, T: Element> BatchView<'_, Gpu<R>, T> {
    /// The device address of the first element.
    pub fn address(&self) -> u64 {
        self.buffer.address() + (self.layout.part.offset * size_of::<T>()) as u64
    }
}

impl<R: Runtime, T: Element> BatchViewMut<'_, Gpu<R>, T> {
    /// The device address of the first element.
    pub fn address(&mut self) -> u64 {
        self.as_view().address()
    }
}

impl<R: Runtime> Gpu<R> {
    /// Starts a kernel with its arguments, in their order.
    ///
    /// # Safety
    /// The arguments are those that the kernel takes, and what it reads and writes with them lies in live buffers that
    /// nothing else uses meanwhile.
    ///
    /// # Errors
    /// [`Error::Launch`] outside the limits of the oldest card; whatever the device reports.
    pub unsafe fn launch(&self, kernel: Kernel, shape: Shape, arguments: &[Argument]) -> Result<()> {
        shape.check(kernel)?;
        // SAFETY: handed on from the caller.
        unsafe { self.runtime.launch(kernel, shape, arguments) }
    }
}

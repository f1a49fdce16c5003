//! The device handle.

use std::fmt;
use std::sync::Arc;

use super::awake::keep_awake;
use super::buffer::{CpuBuffer, Memory};
use super::instructions::{Instructions, Kernel};
use super::profile::{Clock, CpuSpan, Profile};
use crate::blas::check;
use crate::{Backend, Element, Error, MemoryUse, Result, View, ViewMut};

struct Shared {
    pool: rayon::ThreadPool,
    instructions: Instructions,
    memory: Arc<Memory>,
    clock: Arc<Clock>,
}

/// The processor, with a thread pool of its own.
#[derive(Clone)]
pub struct Cpu {
    shared: Arc<Shared>,
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpu")
            .field("threads", &self.threads())
            .field("instructions", &self.instructions())
            .finish_non_exhaustive()
    }
}

impl Cpu {
    /// A device with as many threads as the process may use cores.
    ///
    /// # Errors
    /// [`Error::Threads`] when the pool cannot be started.
    pub fn new() -> Result<Self> {
        Self::builder().build()
    }

    /// A device with `threads` threads, at least one.
    ///
    /// # Errors
    /// [`Error::Threads`] when the pool cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self> {
        Self::builder().threads(threads).build()
    }

    /// A device with other settings.
    pub fn builder() -> CpuBuilder {
        CpuBuilder { threads: None, instructions: Instructions::detect() }
    }

    /// The vector instructions that its kernels use.
    pub fn instructions(&self) -> Instructions {
        self.shared.instructions
    }

    /// Runs a kernel on the calling thread, with the device's vector instructions.
    #[inline]
    pub fn run<K: Kernel>(&self, kernel: K) -> K::Output {
        // SAFETY: the builder took care that the processor has them.
        unsafe { self.shared.instructions.run(kernel) }
    }

    /// Threads in its pool.
    pub fn threads(&self) -> usize {
        self.shared.pool.current_num_threads()
    }

    /// Runs `work` on the pool: operations called inside find the other threads awake.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.shared.pool.install(work)
    }

    /// Starts a new profile, or stops booking.
    pub fn set_profiling(&self, on: bool) {
        self.shared.clock.run(on);
    }

    /// What was booked since the profile was started.
    pub fn profile(&self) -> Profile {
        self.shared.clock.profile()
    }
}

/// Settings of a [`Cpu`].
#[derive(Clone, Copy, Debug)]
pub struct CpuBuilder {
    threads: Option<usize>,
    instructions: Instructions,
}

impl CpuBuilder {
    /// Threads in the pool, at least one; as many as the process may use cores if this is not called.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads.max(1)), ..self }
    }

    /// The widest vector instructions that our kernels may use; what the processor lacks is not used anyhow. The library
    /// behind matrix products makes its own choice.
    #[must_use]
    pub fn instructions(self, widest: Instructions) -> Self {
        Self { instructions: widest.min(Instructions::detect()), ..self }
    }

    /// The device.
    ///
    /// # Errors
    /// [`Error::Threads`] when the pool cannot be started.
    pub fn build(self) -> Result<Cpu> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(cores);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("fermi-blas-{index}"))
            .build()
            .map_err(|source| Error::Threads { threads, source })?;
        let (instructions, memory, clock) = (self.instructions, Arc::default(), Arc::default());
        Ok(Cpu { shared: Arc::new(Shared { pool, instructions, memory, clock }) })
    }
}

impl Backend for Cpu {
    type Buffer<T: Element> = CpuBuffer<T>;
    type Span = CpuSpan;

    fn alloc<T: Element>(&self, len: usize) -> Result<CpuBuffer<T>> {
        CpuBuffer::zeros(len, &self.shared.memory)
    }

    fn write<T: Element>(&self, source: &[T], mut target: ViewMut<'_, Self, T>) -> Result<()> {
        check("write", "elements", target.rows() * target.columns(), source.len())?;
        for row in 0..target.rows() {
            let columns = target.columns();
            target.row_mut(row).copy_from_slice(&source[row * columns..][..columns]);
        }
        Ok(())
    }

    fn read<T: Element>(&self, source: View<'_, Self, T>, target: &mut [T]) -> Result<()> {
        check("read", "elements", source.rows() * source.columns(), target.len())?;
        for row in 0..source.rows() {
            let columns = source.columns();
            target[row * columns..][..columns].copy_from_slice(source.row(row));
        }
        Ok(())
    }

    fn copy<T: Element>(&self, source: View<'_, Self, T>, target: ViewMut<'_, Self, T>) -> Result<()> {
        check("copy", "rows", source.rows(), target.rows())?;
        check("copy", "columns", source.columns(), target.columns())?;
        self.for_each_row(target, |index, row| row.copy_from_slice(source.row(index)));
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn run_pass<R: Send>(&self, pass: impl FnOnce() -> R + Send) -> R {
        self.install(|| keep_awake(pass))
    }

    fn memory(&self) -> MemoryUse {
        self.shared.memory.account.memory()
    }

    fn span(&self, component: &'static str) -> CpuSpan {
        self.shared.clock.span(component)
    }
}

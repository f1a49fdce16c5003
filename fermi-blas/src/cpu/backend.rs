//! The device handle.

use std::fmt;
use std::sync::Arc;

use super::buffer::{Account, CpuBuffer};
use super::profile::{Clock, CpuSpan, Profile};
use crate::blas::check;
use crate::{Backend, Element, Error, MemoryUse, Result, View, ViewMut};

struct Shared {
    pool: rayon::ThreadPool,
    account: Arc<Account>,
    clock: Arc<Clock>,
}

/// The processor, with a thread pool of its own.
#[derive(Clone)]
pub struct Cpu {
    shared: Arc<Shared>,
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpu").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl Cpu {
    /// A device with as many threads as the process may use cores.
    ///
    /// # Errors
    /// [`Error::Threads`] when the pool cannot be started.
    pub fn new() -> Result<Self> {
        Self::with_threads(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// A device with `threads` threads, at least one.
    ///
    /// # Errors
    /// [`Error::Threads`] when the pool cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self> {
        let threads = threads.max(1);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("fermi-blas-{index}"))
            .build()
            .map_err(|source| Error::Threads { threads, source })?;
        Ok(Self { shared: Arc::new(Shared { pool, account: Arc::default(), clock: Arc::default() }) })
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

impl Backend for Cpu {
    type Buffer<T: Element> = CpuBuffer<T>;
    type Span = CpuSpan;

    fn alloc<T: Element>(&self, len: usize) -> Result<CpuBuffer<T>> {
        CpuBuffer::zeros(len, &self.shared.account)
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
        self.install(pass)
    }

    fn memory(&self) -> MemoryUse {
        self.shared.account.memory()
    }

    fn span(&self, component: &'static str) -> CpuSpan {
        self.shared.clock.span(component)
    }
}

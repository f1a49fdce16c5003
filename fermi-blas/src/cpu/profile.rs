//! Where the time goes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Time booked under one component.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    calls: u64,
    time: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Clock {
    running: AtomicBool,
    entries: Mutex<BTreeMap<&'static str, Entry>>,
}

impl Clock {
    pub(crate) fn run(&self, on: bool) {
        self.running.store(on, Ordering::Relaxed);
        if on {
            self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    pub(crate) fn profile(&self) -> Profile {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Profile { rows: entries.iter().map(|(name, entry)| (*name, entry.calls, entry.time)).collect() }
    }

    pub(crate) fn span(self: &Arc<Self>, component: &'static str) -> CpuSpan {
        let running = self.running.load(Ordering::Relaxed);
        CpuSpan(running.then(|| (component, Instant::now(), Arc::clone(self))))
    }
}

/// Time that is being booked, until this is dropped.
#[derive(Debug)]
pub struct CpuSpan(Option<(&'static str, Instant, Arc<Clock>)>);

impl Drop for CpuSpan {
    fn drop(&mut self) {
        if let Some((component, start, clock)) = self.0.take() {
            let mut entries = clock.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = entries.entry(component).or_default();
            entry.calls += 1;
            entry.time += start.elapsed();
        }
    }
}

/// Time per component; prints as a table, largest first.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Component, calls, time.
    pub rows: Vec<(&'static str, u64, Duration)>,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: Duration = self.rows.iter().map(|row| row.2).sum();
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| std::cmp::Reverse(row.2));
        writeln!(f, "| component | calls | ms | share |")?;
        writeln!(f, "|---|---|---|---|")?;
        for (name, calls, time) in rows {
            let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
            writeln!(f, "| {name} | {calls} | {:.3} | {share:.1}% |", time.as_secs_f64() * 1e3)?;
        }
        Ok(())
    }
}

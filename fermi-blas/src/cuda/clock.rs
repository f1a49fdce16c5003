//! Where the time goes, by events on the stream.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cust::sys::{CUevent, cuEventCreate, cuEventDestroy_v2, cuEventElapsedTime, cuEventRecord};

use super::context::Context;
use super::status::driver;
use crate::{Profile, Result};

/// A point on the stream.
#[derive(Debug)]
pub(super) struct Event {
    event: CUevent,
    context: Arc<Context>,
}

// SAFETY: an event may be used from any thread in which its context is current.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn record(context: &Arc<Context>) -> Result<Self> {
        let stream = context.enter()?;
        let mut event = std::ptr::null_mut();
        // SAFETY: plain calls; the handle is written before it is used.
        unsafe {
            driver("cuEventCreate", cuEventCreate(&mut event, 0))?;
            let event = Self { event, context: Arc::clone(context) };
            driver("cuEventRecord", cuEventRecord(event.event, stream))?;
            Ok(event)
        }
    }

    /// The time from this event to a later one; both must have been reached.
    pub(super) fn until(&self, end: &Self) -> Result<Duration> {
        self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events were recorded.
        let status = unsafe { cuEventElapsedTime(&mut milliseconds, self.event, end.event) };
        driver("cuEventElapsedTime", status)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the event was created in this context.
            unsafe { cuEventDestroy_v2(self.event) };
        }
    }
}

type Booked = (&'static str, Event, Event);

#[derive(Debug, Default)]
pub(super) struct Clock {
    running: AtomicBool,
    booked: Mutex<Vec<Booked>>,
}

impl Clock {
    pub(super) fn run(&self, on: bool) {
        self.running.store(on, Ordering::Relaxed);
        if on {
            self.booked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// The time between the events so far; the stream must be idle.
    pub(super) fn profile(&self) -> Result<Profile> {
        let booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: BTreeMap<&'static str, (u64, Duration)> = BTreeMap::new();
        for (component, start, end) in booked.iter() {
            let row = rows.entry(component).or_default();
            row.0 += 1;
            row.1 += start.until(end)?;
        }
        Ok(Profile { rows: rows.into_iter().map(|(name, (calls, time))| (name, calls, time)).collect() })
    }

    pub(super) fn span(self: &Arc<Self>, context: &Arc<Context>, component: &'static str) -> Span {
        let start = self.running.load(Ordering::Relaxed).then(|| Event::record(context).ok()).flatten();
        Span(start.map(|start| (component, start, Arc::clone(self))))
    }
}

/// Time on the stream that is being booked, until this is dropped.
#[derive(Debug)]
pub struct Span(Option<(&'static str, Event, Arc<Clock>)>);

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((component, start, clock)) = self.0.take()
            && let Ok(end) = Event::record(&start.context)
        {
            clock.booked.lock().unwrap_or_else(PoisonError::into_inner).push((component, start, end));
        }
    }
}

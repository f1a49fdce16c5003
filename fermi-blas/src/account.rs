//! Counting what a device's buffers hold.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, MemoryUse, Result};

/// The bytes that a device's buffers hold, and how many they may.
#[derive(Debug)]
pub(crate) struct Account {
    in_use: AtomicUsize,
    peak: AtomicUsize,
    most: usize,
}

impl Default for Account {
    fn default() -> Self {
        Self::with_limit(usize::MAX)
    }
}

impl Account {
    /// An account that never holds more than `most` bytes.
    pub(crate) fn with_limit(most: usize) -> Self {
        Self { in_use: AtomicUsize::new(0), peak: AtomicUsize::new(0), most }
    }

    /// Books `bytes`, before or after they are allocated.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] beyond the limit; nothing is booked then.
    pub(crate) fn add(&self, bytes: usize) -> Result<()> {
        let room = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.most);
        let held = self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        let held = held.map_err(|_| Error::OutOfMemory { bytes })? + bytes;
        self.peak.fetch_max(held, Ordering::Relaxed);
        Ok(())
    }

    /// Books that `bytes` were released.
    pub(crate) fn remove(&self, bytes: usize) {
        self.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn memory(&self) -> MemoryUse {
        MemoryUse { in_use: self.in_use.load(Ordering::Relaxed), peak: self.peak.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::Account;
    use crate::{Error, MemoryUse};

    #[test]
    fn nothing_is_booked_beyond_the_limit() {
        let account = Account::with_limit(100);
        account.add(60).unwrap();
        assert!(matches!(account.add(41), Err(Error::OutOfMemory { bytes: 41 })));
        assert!(matches!(account.add(usize::MAX), Err(Error::OutOfMemory { .. })));
        account.add(40).unwrap();
        account.remove(70);
        assert_eq!(account.memory(), MemoryUse { in_use: 30, peak: 100 });
    }
}

//! Memory in huge pages.
//!
//! Decoding reads every weight once a token. With small pages, whose addresses must be looked up every 4 KiB and at whose
//! ends the processor's look-ahead stops, that takes a quarter longer. So buffers of some size share regions of huge pages.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Result};

/// A huge page of x86-64 and of most others.
const HUGE_PAGE: usize = 2 << 20;

/// Bytes of a region that several buffers share.
const SHARED: usize = 32 << 20;

/// A buffer of at least so many bytes has a region of its own: rounding it up adds little.
const LARGE: usize = SHARED / 2;

/// Buffers start on a cache line, which is also the width of the widest vector register.
pub(super) const ALIGNMENT: usize = 64;

/// A run of huge pages.
#[derive(Debug)]
pub(super) struct Region {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a region owns its memory and says nothing of what is in it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    fn new(bytes: usize) -> Result<Arc<Self>> {
        let out_of_memory = |_| Error::OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes, HUGE_PAGE).map_err(out_of_memory)?.pad_to_align();
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(Error::OutOfMemory { bytes })?;
        // Memory that was in use before lies in small pages and would stay there, so it is given back first. Advice that is
        // not followed costs speed only.
        #[cfg(target_os = "linux")]
        for advice in [libc::MADV_DONTNEED, libc::MADV_HUGEPAGE] {
            // SAFETY: whole pages, all of them just allocated; nothing of what they hold is needed.
            unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), advice) };
        }
        Ok(Arc::new(Self { start, layout }))
    }

    /// # Safety
    /// `offset` lies inside.
    unsafe fn at(&self, offset: usize) -> NonNull<u8> {
        // SAFETY: handed on from the caller.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The region from which the next buffer is cut.
#[derive(Debug, Default)]
pub(super) struct Regions {
    current: Mutex<Option<(Arc<Region>, usize)>>,
}

impl Regions {
    /// Room for `bytes` (not 0) on a cache line, of any content, and the region that it lies in.
    ///
    /// A region is released when the last buffer in it is; what a buffer leaves behind is used again only then.
    pub(super) fn take(&self, bytes: usize) -> Result<(NonNull<u8>, Arc<Region>)> {
        if bytes >= LARGE {
            let region = Region::new(bytes)?;
            return Ok((region.start, region));
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = match &*current {
            Some((region, _)) if Arc::strong_count(region) == 1 => Some(0),
            Some((_, used)) if used + bytes <= SHARED => Some(*used),
            _ => None,
        };
        let (region, offset) = match (current.take(), offset) {
            (Some((region, _)), Some(offset)) => (region, offset),
            _ => (Region::new(SHARED)?, 0),
        };
        *current = Some((Arc::clone(&region), (offset + bytes).next_multiple_of(ALIGNMENT)));
        // SAFETY: offset + bytes is within the region.
        Ok((unsafe { region.at(offset) }, region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_side_by_side_and_come_back_together() {
        let regions = Regions::default();
        let (first, held) = regions.take(100).unwrap();
        let (second, also) = regions.take(1 << 20).unwrap();
        assert_eq!(first.as_ptr().wrapping_add(128), second.as_ptr());
        assert_eq!(first.as_ptr().addr() % HUGE_PAGE, 0);
        drop(held);
        let (third, third_held) = regions.take(64).unwrap();
        assert_eq!(third.as_ptr().addr(), second.as_ptr().addr() + (1 << 20));
        drop((also, third_held));
        assert_eq!(regions.take(LARGE - 1).unwrap().0, first);
    }

    #[test]
    fn a_full_region_is_followed_by_another_and_large_pieces_stand_alone() {
        let regions = Regions::default();
        let kept: Vec<_> = (0..3).map(|_| regions.take(LARGE - 64).unwrap()).collect();
        assert!(Arc::ptr_eq(&kept[0].1, &kept[1].1));
        assert!(!Arc::ptr_eq(&kept[1].1, &kept[2].1));
        let (_, alone) = regions.take(LARGE).unwrap();
        assert_eq!(Arc::strong_count(&alone), 1);
        assert!(matches!(regions.take(isize::MAX as usize - 8), Err(Error::OutOfMemory { .. })));
    }
}

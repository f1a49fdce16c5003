//! Asking for memory before it is needed.

/// Values of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 16;

/// Starts to bring `values` into the first-level cache, where the processor can be asked to.
#[inline(always)]
pub(super) fn prefetch(values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(LINE) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint; every x86-64 processor has SSE, and the address is that of a live value.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

//! One text of each kernel, compiled for several instruction sets, chosen when the program runs.
//!
//! A [`Kernel`] is plain code over slices and arrays of [`LANES`] values, always inlined. It is compiled once inside a
//! function for each instruction set, where the compiler turns its loops into that set's vectors. So no intrinsics are
//! written, and every path computes the same; only the fused multiply-add differs in rounding.

/// Values that a kernel handles side by side: one register of AVX-512, two of AVX2, four of SSE2 or NEON.
pub const LANES: usize = 16;

/// The vector instructions that kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Instructions {
    /// What every processor of the target has.
    Baseline,
    /// AVX2 and fused multiply-add: x86 since 2013.
    Avx2,
    /// AVX-512 with bytes and words, doublewords and 256-bit forms: x86 servers since 2017.
    Avx512,
}

impl Instructions {
    /// The widest that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }

    /// Runs a kernel with these instructions.
    ///
    /// # Safety
    /// The processor must have them: they are not above [`Instructions::detect`].
    #[inline]
    pub(crate) unsafe fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            // SAFETY: the caller promises that the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2(kernel) },
            _ => kernel.run::<Separate>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Fused>()
}

/// Asks for the cache line at `address` ahead of its use. Any address will do: nothing is read.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    // SAFETY: a prefetch of any address is harmless, and every x86-64 processor has it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Work that is compiled for every instruction set.
///
/// `run` and all that it calls on the way must be `#[inline(always)]`: what is not inlined is compiled for the baseline.
pub trait Kernel {
    /// What it gives back.
    type Output;

    /// Does the work.
    fn run<I: Isa>(self) -> Self::Output;
}

/// What kernels must know of the instruction set.
pub trait Isa {
    /// a · b + c, rounded once where the processor can.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// With fused multiply-add.
#[cfg(target_arch = "x86_64")]
struct Fused;

#[cfg(target_arch = "x86_64")]
impl Isa for Fused {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// The target's own instructions; a fused multiply-add in software would be slow.
struct Separate;

impl Isa for Separate {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { a.mul_add(b, c) } else { a * b + c }
    }
}

//! In which arithmetic cuBLAS multiplies.

use std::ffi::{CStr, c_float, c_int, c_longlong, c_void};

use cublas_sys::{cublasHandle_t, cublasOperation_t, cublasStatus_t};

/// The first card with TF32 and bfloat16 products: Ampere.
const TENSOR_CORES: (i32, i32) = (8, 0);

/// The first cuBLAS that knows them.
const CUBLAS_11: i32 = 11_000;

/// The arithmetic of matrix products. Inputs, outputs and sums are float32 in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MathMode {
    /// Products of float32 values as they are.
    #[default]
    Float32,
    /// Inputs are rounded to 10 bits of mantissa (TF32) and multiplied by tensor cores: Ampere and newer.
    Tf32,
    /// Inputs are rounded to bfloat16, 7 bits of mantissa, and multiplied by tensor cores: Ampere and newer.
    Bf16,
}

impl MathMode {
    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Tf32 => "TF32",
            Self::Bf16 => "bfloat16",
        }
    }

    /// Whether a card of this compute capability and a cuBLAS of this version have it.
    pub(super) fn is_known_to(self, capability: (i32, i32), cublas_version: i32) -> bool {
        self == Self::Float32 || (capability >= TENSOR_CORES && cublas_version >= CUBLAS_11)
    }

    /// `cublasMath_t`
    pub(super) fn code(self) -> c_int {
        match self {
            Self::Float32 | Self::Bf16 => 0,
            Self::Tf32 => 3,
        }
    }
}

/// `cudaDataType_t`: float32.
pub(super) const REAL_32: c_int = 0;

/// `cublasComputeType_t`: float32 sums of products in bfloat16.
pub(super) const FAST_BF16: c_int = 75;

/// `cublasGemmAlgo_t`: the library's choice.
pub(super) const ANY_ALGORITHM: c_int = -1;

pub(super) type SetMathMode = unsafe extern "C" fn(cublasHandle_t, c_int) -> cublasStatus_t;

/// `cublasGemmStridedBatchedEx` as of cuBLAS 11.
pub(super) type GemmStridedBatchedEx = unsafe extern "C" fn(
    cublasHandle_t,
    cublasOperation_t,
    cublasOperation_t,
    c_int,
    c_int,
    c_int,
    *const c_float,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_void,
    c_int,
    c_int,
    c_longlong,
    *const c_float,
    *mut c_void,
    c_int,
    c_int,
    c_longlong,
    c_int,
    c_int,
    c_int,
) -> cublasStatus_t;

/// A function of the libraries that are loaded, null where they have none of that name: what is newer than CUDA 8.0 is not
/// linked, so that programs start without it.
pub(super) fn loaded(name: &CStr) -> *mut c_void {
    #[cfg(target_os = "linux")]
    // SAFETY: a plain call; the name ends in a zero.
    return unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    #[cfg(not(target_os = "linux"))]
    return std::ptr::null_mut();
}

#[cfg(test)]
mod tests {
    use super::MathMode;

    #[test]
    fn tensor_cores_want_a_new_card_and_a_new_library() {
        for mode in [MathMode::Tf32, MathMode::Bf16] {
            assert!(mode.is_known_to((8, 0), 11_000) && mode.is_known_to((9, 0), 130_100));
            assert!(!mode.is_known_to((7, 5), 130_100) && !mode.is_known_to((9, 0), 10_200));
        }
        assert!(MathMode::Float32.is_known_to((2, 0), 8_000));
    }
}

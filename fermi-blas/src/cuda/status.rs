//! Return codes as errors.

use std::ffi::{CStr, c_char};

use cublas_sys::cublasStatus_t;
use cust::sys::{CUresult, cuGetErrorName};

use crate::{Error, Result};

/// The driver library's name, for reports.
pub(super) const DRIVER: &str = "libcuda";

/// The BLAS library's name, for reports.
pub(super) const CUBLAS: &str = "libcublas";

/// Fails unless the driver's `operation` succeeded.
pub(super) fn driver(operation: &'static str, status: CUresult) -> Result<()> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        status => Err(Error::Device { library: DRIVER, operation, code: status as i32, name: name(status) }),
    }
}

fn name(status: CUresult) -> String {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: the driver writes the address of a constant string, or leaves the null pointer.
    unsafe {
        let found = cuGetErrorName(status, &mut text) == CUresult::CUDA_SUCCESS && !text.is_null();
        if found { CStr::from_ptr(text).to_string_lossy().into_owned() } else { format!("{status:?}") }
    }
}

/// Fails unless cuBLAS's `operation` succeeded.
pub(super) fn cublas(operation: &'static str, status: cublasStatus_t) -> Result<()> {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        status => Err(Error::Device {
            library: CUBLAS,
            operation,
            code: status as i32,
            name: format!("{status:?}"),
        }),
    }
}

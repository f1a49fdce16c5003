//! Matrix products by cuBLAS.
//!
//! cuBLAS reads matrices in the order of columns: a matrix in the order of rows is its transpose there, so C = A · B is asked
//! for as Cᵀ = Bᵀ · Aᵀ.

use std::ffi::{c_float, c_int, c_longlong};
use std::sync::{Arc, Mutex, PoisonError};

use cublas_sys::{
    cublasCreate_v2, cublasDestroy_v2, cublasHandle_t, cublasOperation_t, cublasSetStream_v2, cublasSgemm_v2,
    cublasStatus_t,
};

use super::context::Context;
use super::status::cublas;
use crate::gpu::{BatchedProduct, Operand};
use crate::{Error, Result};

unsafe extern "C" {
    /// Of CUDA 8.0, but not among the bindings' declarations.
    fn cublasSgemmStridedBatched(
        handle: cublasHandle_t,
        transa: cublasOperation_t,
        transb: cublasOperation_t,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const c_float,
        a: *const c_float,
        lda: c_int,
        stride_a: c_longlong,
        b: *const c_float,
        ldb: c_int,
        stride_b: c_longlong,
        beta: *const c_float,
        c: *mut c_float,
        ldc: c_int,
        stride_c: c_longlong,
        count: c_int,
    ) -> cublasStatus_t;
}

/// A handle of cuBLAS, bound to the context's stream.
#[derive(Debug)]
pub(super) struct Products {
    context: Arc<Context>,
    handle: Mutex<Handle>,
}

#[derive(Debug)]
struct Handle(cublasHandle_t);

// SAFETY: a handle may be used from any thread, one at a time, which the mutex sees to.
unsafe impl Send for Handle {}

impl Products {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self> {
        let stream = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle is written before it is used; both libraries mean the same stream type.
        unsafe {
            cublas("cublasCreate", cublasCreate_v2(&mut handle))?;
            let products = Self { context: Arc::clone(context), handle: Mutex::new(Handle(handle)) };
            cublas("cublasSetStream", cublasSetStream_v2(handle, stream.cast()))?;
            Ok(products)
        }
    }

    /// # Safety
    /// As for [`crate::gpu::Runtime::gemm`].
    pub(super) unsafe fn gemm(&self, product: &BatchedProduct) -> Result<()> {
        let BatchedProduct { m, k, n, batch, a, b, c, alpha, beta } = *product;
        if m == 0 || n == 0 || batch == 0 {
            return Ok(());
        }
        self.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, columns, inner) = (int(n)?, int(m)?, int(k)?);
        let (lda, ldb, ldc) = (leading(b)?, leading(a)?, leading(c)?);
        let pointer = |operand: Operand| operand.address as *mut f32;
        // SAFETY: the sizes were checked where the views were built; cuBLAS reads alpha and beta before it returns.
        unsafe {
            if batch == 1 {
                let status = cublasSgemm_v2(
                    handle.0,
                    operation(b),
                    operation(a),
                    rows,
                    columns,
                    inner,
                    &alpha,
                    pointer(b),
                    lda,
                    pointer(a),
                    ldb,
                    &beta,
                    pointer(c),
                    ldc,
                );
                return cublas("cublasSgemm", status);
            }
            let status = cublasSgemmStridedBatched(
                handle.0,
                operation(b),
                operation(a),
                rows,
                columns,
                inner,
                &alpha,
                pointer(b),
                lda,
                stride(b),
                pointer(a),
                ldb,
                stride(a),
                &beta,
                pointer(c),
                ldc,
                stride(c),
                int(batch)?,
            );
            cublas("cublasSgemmStridedBatched", status)
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            let handle = self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the handle was created in this context and is not used any more.
            unsafe { cublasDestroy_v2(handle.0) };
        }
    }
}

fn operation(operand: Operand) -> cublasOperation_t {
    if operand.transposed { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N }
}

fn int(size: usize) -> Result<c_int> {
    c_int::try_from(size).map_err(|_| Error::SizeOverflow { operation: "gemm" })
}

/// cuBLAS wants at least 1, also of a matrix of one row, whose stride is never used.
fn leading(operand: Operand) -> Result<c_int> {
    int(operand.row_stride.max(1))
}

fn stride(operand: Operand) -> c_longlong {
    operand.batch_stride as c_longlong
}

//! Matrix products by cuBLAS.
//!
//! cuBLAS reads matrices in the order of columns: a matrix in the order of rows is its transpose there, so C = A · B is asked
//! for as Cᵀ = Bᵀ · Aᵀ.

use std::ffi::{c_float, c_int, c_longlong, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cublas_sys::{
    cublasCreate_v2, cublasDestroy_v2, cublasGetVersion_v2, cublasHandle_t, cublasOperation_t,
    cublasSetStream_v2, cublasSgemm_v2, cublasSgemmBatched, cublasStatus_t,
};

use super::context::Context;
use super::device::DeviceInfo;
use super::math_mode::{
    ANY_ALGORITHM, FAST_BF16, GemmStridedBatchedEx, MathMode, REAL_32, SetMathMode, loaded,
};
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
    version: i32,
    /// The function for products in bfloat16, in that mode.
    bf16: Option<GemmStridedBatchedEx>,
}

#[derive(Debug)]
struct Handle(cublasHandle_t);

// SAFETY: a handle may be used from any thread, one at a time, which the mutex sees to.
unsafe impl Send for Handle {}

impl Products {
    pub(super) fn new(context: &Arc<Context>, info: &DeviceInfo, mode: MathMode) -> Result<Self> {
        let stream = context.enter()?;
        let (mut handle, mut version) = (std::ptr::null_mut(), 0);
        // SAFETY: the handle is written before it is used; both libraries mean the same stream type.
        unsafe { cublas("cublasCreate", cublasCreate_v2(&mut handle))? };
        let context = Arc::clone(context);
        let mut products = Self { context, handle: Mutex::new(Handle(handle)), version, bf16: None };
        // SAFETY: the handle was just created; both libraries mean the same stream type.
        unsafe {
            cublas("cublasSetStream", cublasSetStream_v2(handle, stream.cast()))?;
            cublas("cublasGetVersion", cublasGetVersion_v2(handle, &mut version))?;
        }
        products.version = version;
        if !mode.is_known_to(info.capability, version) || !products.set_mode(handle, mode)? {
            let (name, capability) = (info.name.clone(), info.capability);
            return Err(Error::MathMode { mode: mode.name(), name, capability, cublas_version: version });
        }
        Ok(products)
    }

    /// Whether the library has the functions for this mode. Float32 needs none: older libraries know nothing else.
    fn set_mode(&mut self, handle: cublasHandle_t, mode: MathMode) -> Result<bool> {
        let set = loaded(c"cublasSetMathMode");
        // SAFETY: the function's own type, or null.
        let set = unsafe { std::mem::transmute::<*mut c_void, Option<SetMathMode>>(set) };
        if let Some(set) = set {
            // SAFETY: the handle is live.
            cublas("cublasSetMathMode", unsafe { set(handle, mode.code()) })?;
        }
        if mode == MathMode::Bf16 {
            let product = loaded(c"cublasGemmStridedBatchedEx");
            // SAFETY: the function's own type since cuBLAS 11, which the caller checked, or null.
            self.bf16 = unsafe { std::mem::transmute::<*mut c_void, Option<GemmStridedBatchedEx>>(product) };
        }
        Ok(match mode {
            MathMode::Float32 => true,
            MathMode::Tf32 => set.is_some(),
            MathMode::Bf16 => self.bf16.is_some(),
        })
    }

    pub(super) fn version(&self) -> i32 {
        self.version
    }

    /// # Safety
    /// As for [`Products::gemm`], with sizes that fit.
    unsafe fn gemm_bf16(
        &self,
        handle: cublasHandle_t,
        product: &BatchedProduct,
        multiply: GemmStridedBatchedEx,
    ) -> Result<()> {
        let BatchedProduct { m, k, n, batch, a, b, c, alpha, beta } = *product;
        // SAFETY: handed on from the caller.
        let status = unsafe {
            multiply(
                handle,
                operation(b),
                operation(a),
                int(n)?,
                int(m)?,
                int(k)?,
                &alpha,
                b.address as *const c_void,
                REAL_32,
                leading(b)?,
                stride(b),
                a.address as *const c_void,
                REAL_32,
                leading(a)?,
                stride(a),
                &beta,
                c.address as *mut c_void,
                REAL_32,
                leading(c)?,
                stride(c),
                int(batch)?,
                FAST_BF16,
                ANY_ALGORITHM,
            )
        };
        cublas("cublasGemmStridedBatchedEx", status)
    }

    /// # Safety
    /// As for [`crate::gpu::Runtime::gemm`].
    pub(super) unsafe fn gemm(&self, product: &BatchedProduct) -> Result<()> {
        let BatchedProduct { m, k, n, batch, a, b, c, alpha, beta } = *product;
        self.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(multiply) = self.bf16 {
            // SAFETY: handed on from the caller.
            return unsafe { self.gemm_bf16(handle.0, product, multiply) };
        }
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

impl Products {
    /// Whether a product's entries may lie at other than one distance: not in bfloat16, for which there is no such function.
    pub(super) fn takes_pointers(&self) -> bool {
        self.bf16.is_none()
    }

    /// The same product with the entries' addresses in device memory: those of A, then of B, then of C.
    ///
    /// # Safety
    /// As for [`crate::gpu::Runtime::gemm`].
    pub(super) unsafe fn gemm_pointers(&self, product: &BatchedProduct, pointers: u64) -> Result<()> {
        let BatchedProduct { m, k, n, batch, a, b, c, alpha, beta } = *product;
        self.context.enter()?;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |part: usize| pointers + (part * batch * size_of::<u64>()) as u64;
        // SAFETY: the sizes were checked where the views were built; cuBLAS reads alpha and beta before it returns.
        let status = unsafe {
            cublasSgemmBatched(
                handle.0,
                operation(b),
                operation(a),
                int(n)?,
                int(m)?,
                int(k)?,
                &alpha,
                at(1) as *mut *const f32,
                leading(b)?,
                at(0) as *mut *const f32,
                leading(a)?,
                &beta,
                at(2) as *mut *mut f32,
                leading(c)?,
                int(batch)?,
            )
        };
        cublas("cublasSgemmBatched", status)
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

/// 0 for a matrix that all entries share; other repetitions go by pointers.
fn stride(operand: Operand) -> c_longlong {
    if operand.repeat == 1 { operand.batch_stride as c_longlong } else { 0 }
}

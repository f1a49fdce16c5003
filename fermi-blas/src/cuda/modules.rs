//! Kernels: the driver compiles a module's PTX once, and its functions are looked up once.

use std::ffi::{CString, c_void};
use std::sync::{Arc, PoisonError, RwLock};

use cust::sys::{
    CUfunction, CUjit_option, CUmodule, CUresult, cuModuleGetFunction, cuModuleLoadDataEx, cuModuleUnload,
};

use super::context::Context;
use super::status::driver;
use crate::gpu::{Kernel, Module};
use crate::{Error, Result};

/// Bytes for what the driver's compiler has to say.
const LOG: usize = 4 << 10;

/// A module in the device, with its functions in the order of [`Module::kernels`].
#[derive(Debug)]
struct Loaded {
    source: &'static Module,
    module: CUmodule,
    functions: Vec<CUfunction>,
}

/// The modules of a device.
#[derive(Debug)]
pub(super) struct Modules {
    context: Arc<Context>,
    loaded: RwLock<Vec<Loaded>>,
}

// SAFETY: module and function handles may be used from any thread in which their context is current.
unsafe impl Send for Modules {}
// SAFETY: as above.
unsafe impl Sync for Modules {}

impl Modules {
    pub(super) fn new(context: &Arc<Context>) -> Self {
        Self { context: Arc::clone(context), loaded: RwLock::default() }
    }

    /// The function of a kernel; its module is loaded at the first call. The context must be current.
    pub(super) fn function(&self, kernel: Kernel) -> Result<CUfunction> {
        let find = |loaded: &[Loaded]| {
            let module = loaded.iter().find(|loaded| std::ptr::eq(loaded.source, kernel.module));
            module.and_then(|module| module.functions.get(kernel.index).copied())
        };
        if let Some(function) = find(&self.loaded.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(function);
        }
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        if find(&loaded).is_none() {
            loaded.push(load(kernel.module)?);
        }
        find(&loaded).ok_or_else(|| missing(kernel.module, kernel.name()))
    }
}

impl Drop for Modules {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            for loaded in self.loaded.get_mut().unwrap_or_else(PoisonError::into_inner) {
                // SAFETY: the module was loaded in this context and no launch can come any more.
                unsafe { cuModuleUnload(loaded.module) };
            }
        }
    }
}

fn missing(module: &'static Module, kernel: &'static str) -> Error {
    Error::Kernel { module: module.name, kernel, log: "the module has no such kernel".to_owned() }
}

fn load(source: &'static Module) -> Result<Loaded> {
    let failed = |log: String| Error::Kernel { module: source.name, kernel: "all", log };
    let text = CString::new(source.ptx).map_err(|error| failed(error.to_string()))?;
    let mut log = vec![0u8; LOG];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends in a zero; the options say how long the log is.
    let status = unsafe {
        cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
    };
    if status != CUresult::CUDA_SUCCESS {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(0);
        let log = String::from_utf8_lossy(&log[..end]).trim().to_owned();
        return Err(failed(if log.is_empty() { format!("{status:?}") } else { log }));
    }
    let mut loaded = Loaded { source, module, functions: Vec::new() };
    for name in source.kernels {
        let c_name = CString::new(*name).map_err(|error| failed(error.to_string()))?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module was just loaded; the name ends in a zero.
        let status = unsafe { cuModuleGetFunction(&mut function, module, c_name.as_ptr()) };
        driver("cuModuleGetFunction", status).map_err(|_| missing(source, name))?;
        loaded.functions.push(function);
    }
    Ok(loaded)
}

//! A card as a runtime.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cust::sys::{
    CUDA_MEMCPY2D, CUdevice, CUmemorytype, cuLaunchKernel, cuMemGetInfo_v2, cuMemcpy2DAsync_v2,
    cuMemcpyDtoDAsync_v2, cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2,
};

use super::clock::{Clock, Event, Span};
use super::context::Context;
use super::device::DeviceInfo;
use super::math_mode::MathMode;
use super::memory::Memory;
use super::modules::Modules;
use super::products::Products;
use super::status::driver;
use crate::account::Account;
use crate::gpu::{Argument, BatchedProduct, Gpu, Kernel, Runtime, Shape, Strided};
use crate::{MemoryUse, Profile, Result};

/// Arguments of a kernel at most.
const MOST_ARGUMENTS: usize = 24;

/// A card, through CUDA's driver.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

/// Dropped in the order of the fields, the context last.
struct Shared {
    info: DeviceInfo,
    products: Products,
    modules: Modules,
    account: Arc<Account>,
    clock: Arc<Clock>,
    context: Arc<Context>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Driver").field(&self.shared.info.name).finish()
    }
}

impl Driver {
    pub(super) fn new(
        device: CUdevice,
        info: &DeviceInfo,
        most_bytes: usize,
        mode: MathMode,
    ) -> Result<Self> {
        let context = Context::new(device)?;
        Ok(Self {
            shared: Arc::new(Shared {
                info: info.clone(),
                products: Products::new(&context, info, mode)?,
                modules: Modules::new(&context),
                account: Arc::new(Account::with_limit(most_bytes)),
                clock: Arc::default(),
                context,
            }),
        })
    }
}

impl Gpu<Driver> {
    /// The card's name.
    pub fn name(&self) -> &str {
        &self.runtime().shared.info.name
    }

    /// What is known of the card.
    pub fn info(&self) -> &DeviceInfo {
        &self.runtime().shared.info
    }

    /// Bytes of the card that nobody holds, neither this program nor another.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub fn free_memory(&self) -> Result<usize> {
        self.runtime().shared.context.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a plain call.
        driver("cuMemGetInfo", unsafe { cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free)
    }

    /// The version of the cuBLAS that was opened, as the library counts: 8000 is 8.0, 130100 is 13.1.
    pub fn cublas_version(&self) -> i32 {
        self.runtime().shared.products.version()
    }

    /// Does `work`, waits for it, and returns the time that it took on the card, by two events on its stream.
    ///
    /// # Errors
    /// That of `work`, or whatever the device's pending work failed with.
    pub fn time<E: From<crate::Error>>(
        &self,
        work: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Duration, E> {
        let context = &self.runtime().shared.context;
        let start = Event::record(context)?;
        work()?;
        let end = Event::record(context)?;
        self.runtime().synchronize()?;
        Ok(start.until(&end)?)
    }

    /// Starts a new profile, or stops booking.
    pub fn set_profiling(&self, on: bool) {
        self.runtime().shared.clock.run(on);
    }

    /// What was booked since the profile was started.
    ///
    /// # Errors
    /// Whatever the device's pending work failed with.
    pub fn profile(&self) -> Result<Profile> {
        self.runtime().synchronize()?;
        self.runtime().shared.clock.profile()
    }
}

fn device_side(strided: Strided) -> (CUmemorytype, u64, usize) {
    (CUmemorytype::CU_MEMORYTYPE_DEVICE, strided.address, strided.pitch)
}

/// A copy between two places on the device, or between host and device.
fn copy_2d(
    source: (CUmemorytype, u64, usize),
    target: (CUmemorytype, u64, usize),
    width: usize,
    rows: usize,
) -> CUDA_MEMCPY2D {
    let host = |(kind, address, _): (CUmemorytype, u64, usize)| match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => address as *mut c_void,
        _ => std::ptr::null_mut(),
    };
    let device = |(kind, address, _): (CUmemorytype, u64, usize)| match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => 0,
        _ => address,
    };
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: source.0,
        srcHost: host(source),
        srcDevice: device(source),
        srcArray: std::ptr::null_mut(),
        srcPitch: source.2,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: target.0,
        dstHost: host(target),
        dstDevice: device(target),
        dstArray: std::ptr::null_mut(),
        dstPitch: target.2,
        WidthInBytes: width,
        Height: rows,
    }
}

impl Runtime for Driver {
    type Memory = Memory;
    type Span = Span;

    fn alloc(&self, bytes: usize) -> Result<Memory> {
        Memory::zeros(&self.shared.context, &self.shared.account, bytes)
    }

    fn address(memory: &Memory) -> u64 {
        memory.address()
    }

    unsafe fn upload(&self, source: &[u8], target: Strided, width: usize, rows: usize) -> Result<()> {
        let stream = self.shared.context.enter()?;
        // SAFETY: the caller vouches for the target. The driver has read pageable host memory when it returns.
        unsafe {
            if rows == 1 || target.pitch == width {
                let status =
                    cuMemcpyHtoDAsync_v2(target.address, source.as_ptr().cast(), source.len(), stream);
                return driver("cuMemcpyHtoDAsync", status);
            }
            let host = (CUmemorytype::CU_MEMORYTYPE_HOST, source.as_ptr() as u64, width);
            let copy = copy_2d(host, device_side(target), width, rows);
            driver("cuMemcpy2DAsync", cuMemcpy2DAsync_v2(&copy, stream))?;
        }
        self.shared.context.synchronize()
    }

    unsafe fn download(&self, source: Strided, target: &mut [u8], width: usize, rows: usize) -> Result<()> {
        let stream = self.shared.context.enter()?;
        // SAFETY: the caller vouches for the source; the stream is waited for before the borrow of the target ends.
        unsafe {
            if rows == 1 || source.pitch == width {
                let bytes = target.len();
                let status = cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source.address, bytes, stream);
                driver("cuMemcpyDtoHAsync", status)?;
            } else {
                let host = (CUmemorytype::CU_MEMORYTYPE_HOST, target.as_mut_ptr() as u64, width);
                let copy = copy_2d(device_side(source), host, width, rows);
                driver("cuMemcpy2DAsync", cuMemcpy2DAsync_v2(&copy, stream))?;
            }
        }
        self.shared.context.synchronize()
    }

    unsafe fn copy(&self, source: Strided, target: Strided, width: usize, rows: usize) -> Result<()> {
        let stream = self.shared.context.enter()?;
        // SAFETY: the caller vouches for both sides.
        unsafe {
            if rows == 1 || (source.pitch == width && target.pitch == width) {
                let status = cuMemcpyDtoDAsync_v2(target.address, source.address, width * rows, stream);
                return driver("cuMemcpyDtoDAsync", status);
            }
            let copy = copy_2d(device_side(source), device_side(target), width, rows);
            driver("cuMemcpy2DAsync", cuMemcpy2DAsync_v2(&copy, stream))
        }
    }

    unsafe fn launch(&self, kernel: Kernel, shape: Shape, arguments: &[Argument]) -> Result<()> {
        let stream = self.shared.context.enter()?;
        let function = self.shared.modules.function(kernel)?;
        debug_assert!(arguments.len() <= MOST_ARGUMENTS, "{} takes too many arguments", kernel.name());
        let mut pointers = [std::ptr::null_mut::<c_void>(); MOST_ARGUMENTS];
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            *pointer = std::ptr::from_ref(argument).cast_mut().cast();
        }
        let Shape { blocks, threads, shared } = shape;
        // SAFETY: the caller vouches for the arguments, which the driver reads before it returns.
        let status = unsafe {
            cuLaunchKernel(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared,
                stream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        driver(kernel.name(), status)
    }

    unsafe fn gemm(&self, product: &BatchedProduct) -> Result<()> {
        // SAFETY: handed on from the caller.
        unsafe { self.shared.products.gemm(product) }
    }

    unsafe fn gemm_pointers(&self, product: &BatchedProduct, pointers: u64) -> Result<()> {
        // SAFETY: handed on from the caller.
        unsafe { self.shared.products.gemm_pointers(product, pointers) }
    }

    fn takes_pointers(&self) -> bool {
        self.shared.products.takes_pointers()
    }

    fn multiprocessors(&self) -> usize {
        usize::try_from(self.shared.info.multiprocessors).unwrap_or(1)
    }

    fn synchronize(&self) -> Result<()> {
        self.shared.context.synchronize()
    }

    fn memory(&self) -> MemoryUse {
        self.shared.account.memory()
    }

    fn span(&self, component: &'static str) -> Span {
        self.shared.clock.span(&self.shared.context, component)
    }
}

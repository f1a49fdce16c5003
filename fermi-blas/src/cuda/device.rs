//! Which cards there are.

use std::ffi::{CStr, c_int};

use cust::sys::{
    CUdevice_attribute, CUresult, cuDeviceGet, cuDeviceGetAttribute, cuDeviceGetCount, cuDeviceGetName,
    cuDeviceTotalMem_v2, cuDriverGetVersion, cuInit,
};

use super::driver::Driver;
use super::math_mode::MathMode;
use super::status::{DRIVER, driver};
use crate::gpu::Gpu;
use crate::{Error, Result};

/// The oldest compute capability that the kernels' PTX runs on: Fermi.
const OLDEST: (i32, i32) = (2, 0);

/// What is known of a card without using it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number, as `cuda:N` names it.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its compute capability, major and minor.
    pub capability: (i32, i32),
    /// Its memory in bytes.
    pub memory: usize,
    /// Its multiprocessors.
    pub multiprocessors: i32,
    /// The highest clock of its multiprocessors in kHz.
    pub clock_khz: i32,
    /// The version of CUDA that the driver speaks, 1000 · major + 10 · minor.
    pub driver_version: i32,
}

/// How a card is opened.
#[derive(Clone, Debug)]
pub struct CudaBuilder {
    index: usize,
    most_bytes: usize,
    math_mode: MathMode,
}

impl CudaBuilder {
    /// Never holds more than `bytes` in buffers; beyond that an allocation fails as it would on a smaller card.
    #[must_use]
    pub fn memory_limit(self, bytes: usize) -> Self {
        Self { most_bytes: bytes, ..self }
    }

    /// Multiplies matrices in another arithmetic than float32: faster on cards that have it, less exact.
    #[must_use]
    pub fn math_mode(self, math_mode: MathMode) -> Self {
        Self { math_mode, ..self }
    }

    /// Opens the card.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::TooOld`], [`Error::MathMode`], [`Error::OutOfMemory`],
    /// [`Error::Device`].
    pub fn open(self) -> Result<Gpu<Driver>> {
        let info = describe(self.index)?;
        if info.capability < OLDEST {
            return Err(Error::TooOld { name: info.name, capability: info.capability, oldest: OLDEST });
        }
        let mut device = 0;
        // SAFETY: a plain call.
        driver("cuDeviceGet", unsafe { cuDeviceGet(&mut device, self.index as c_int) })?;
        Gpu::over(Driver::new(device, &info, self.most_bytes, self.math_mode)?)
    }
}

impl Gpu<Driver> {
    /// The card of this number.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::TooOld`], [`Error::Device`].
    pub fn new(index: usize) -> Result<Self> {
        Self::builder(index).open()
    }

    /// The card of this number, opened with options.
    pub fn builder(index: usize) -> CudaBuilder {
        CudaBuilder { index, most_bytes: usize::MAX, math_mode: MathMode::default() }
    }

    /// The cards of this machine; none is not an error.
    ///
    /// # Errors
    /// [`Error::NoDriver`] when there is no driver.
    pub fn devices() -> Result<Vec<DeviceInfo>> {
        (0..count()?).map(describe).collect()
    }
}

/// Starts the driver; the first call of all.
fn count() -> Result<usize> {
    // SAFETY: plain calls.
    unsafe {
        match cuInit(0) {
            CUresult::CUDA_SUCCESS => {}
            CUresult::CUDA_ERROR_NO_DEVICE => return Ok(0),
            status => return Err(Error::NoDriver { library: DRIVER, reason: format!("{status:?}") }),
        }
        let mut count: c_int = 0;
        driver("cuDeviceGetCount", cuDeviceGetCount(&mut count))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

fn describe(index: usize) -> Result<DeviceInfo> {
    let devices = count()?;
    if index >= devices {
        return Err(Error::NoDevice { index, devices });
    }
    let mut name = [0; 128];
    let (mut device, mut memory, mut driver_version) = (0, 0, 0);
    let attribute = |which, device| {
        let mut value: c_int = 0;
        // SAFETY: a plain call.
        driver("cuDeviceGetAttribute", unsafe { cuDeviceGetAttribute(&mut value, which, device) })?;
        Ok::<_, Error>(value)
    };
    // SAFETY: the driver writes at most the length that it is told, and ends the name with a zero.
    let name = unsafe {
        driver("cuDeviceGet", cuDeviceGet(&mut device, index as c_int))?;
        driver("cuDeviceGetName", cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int - 1, device))?;
        driver("cuDeviceTotalMem", cuDeviceTotalMem_v2(&mut memory, device))?;
        driver("cuDriverGetVersion", cuDriverGetVersion(&mut driver_version))?;
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)?;
    let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)?;
    let multiprocessors = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)?;
    let clock_khz = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device)?;
    let capability = (major, minor);
    Ok(DeviceInfo { index, name, capability, memory, multiprocessors, clock_khz, driver_version })
}

//! Memory of a CUDA device.

use std::fmt;
use std::marker::PhantomData;

use super::Runtime;
use crate::{DeviceBuffer, Element, Result};

/// A run of elements in a device's memory.
pub struct GpuBuffer<R: Runtime, T> {
    memory: Option<R::Memory>,
    len: usize,
    element: PhantomData<T>,
}

impl<R: Runtime, T> fmt::Debug for GpuBuffer<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuBuffer<{}>[{}]", std::any::type_name::<T>(), self.len)
    }
}

impl<R: Runtime, T: Element> DeviceBuffer for GpuBuffer<R, T> {
    fn len(&self) -> usize {
        self.len
    }
}

impl<R: Runtime, T: Element> GpuBuffer<R, T> {
    pub(super) fn zeros(runtime: &R, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let memory = if bytes == 0 { None } else { Some(runtime.alloc(bytes)?) };
        Ok(Self { memory, len, element: PhantomData })
    }

    /// The device address of the first element; 0 for an empty buffer.
    pub(super) fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, R::address)
    }
}

//! Moving values.

use super::{Gpu, GpuBuffer, Runtime, Strided};
use crate::blas::check;
use crate::{Backend, Element, MemoryUse, Result, View, ViewMut};

impl<R: Runtime, T: Element> View<'_, Gpu<R>, T> {
    fn strided(&self) -> Strided {
        Strided { address: self.address(), pitch: self.row_stride() * size_of::<T>() }
    }
}

impl<R: Runtime> Backend for Gpu<R> {
    type Buffer<T: Element> = GpuBuffer<R, T>;
    type Span = R::Span;

    fn alloc<T: Element>(&self, len: usize) -> Result<GpuBuffer<R, T>> {
        GpuBuffer::zeros(&self.runtime, len)
    }

    fn write<T: Element>(&self, source: &[T], target: ViewMut<'_, Self, T>) -> Result<()> {
        check("write", "elements", target.rows() * target.columns(), source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        let (rows, width) = (target.rows(), target.columns() * size_of::<T>());
        // SAFETY: views lie inside live buffers, and this one is exclusive.
        unsafe { self.runtime.upload(bytemuck::cast_slice(source), target.as_view().strided(), width, rows) }
    }

    fn read<T: Element>(&self, source: View<'_, Self, T>, target: &mut [T]) -> Result<()> {
        check("read", "elements", source.rows() * source.columns(), target.len())?;
        if target.is_empty() {
            return Ok(());
        }
        let (rows, width) = (source.rows(), source.columns() * size_of::<T>());
        // SAFETY: views lie inside live buffers.
        unsafe { self.runtime.download(source.strided(), bytemuck::cast_slice_mut(target), width, rows) }
    }

    fn copy<T: Element>(&self, source: View<'_, Self, T>, target: ViewMut<'_, Self, T>) -> Result<()> {
        check("copy", "rows", source.rows(), target.rows())?;
        check("copy", "columns", source.columns(), target.columns())?;
        if source.rows() * source.columns() == 0 {
            return Ok(());
        }
        let (rows, width) = (source.rows(), source.columns() * size_of::<T>());
        // SAFETY: views lie inside live buffers; the target is exclusive, so the source lies elsewhere.
        unsafe { self.runtime.copy(source.strided(), target.as_view().strided(), width, rows) }
    }

    fn synchronize(&self) -> Result<()> {
        self.runtime.synchronize()
    }

    fn memory(&self) -> MemoryUse {
        self.runtime.memory()
    }

    fn span(&self, component: &'static str) -> R::Span {
        self.runtime.span(component)
    }
}

//! The window kernels on a CUDA device.

use fermi_blas::gpu::{Argument, Gpu, Runtime, Shape};
use fermi_blas::{Result, View, ViewMut, gpu_module};

use crate::window_backend::{check_attention, check_mean};
use crate::{WINDOW_PATCHES, WindowBackend};

gpu_module!(window: "kernels/window.ptx" { window_attention = 0, add_window_mean = 1 });

/// Threads of a block of each kernel: see `kernels/window.cu`.
const ATTENTION_THREADS: u32 = 128;
const MEAN_THREADS: u32 = 256;

impl<R: Runtime> WindowBackend for Gpu<R> {
    fn window_attention(
        &self,
        qkv: View<'_, Self>,
        heads: usize,
        scaling: f32,
        mut context: ViewMut<'_, Self>,
    ) -> Result<()> {
        let head_dim = check_attention(&qkv, heads, &context.as_view())?;
        let windows = context.rows() / WINDOW_PATCHES;
        if windows * head_dim == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::from(qkv.address()),
            Argument::from(context.address()),
            Argument::from(windows),
            Argument::from(heads),
            Argument::from(head_dim),
            Argument::from(qkv.row_stride()),
            Argument::from(context.row_stride()),
            Argument::from(scaling),
        ];
        let shape = Shape::blocks(windows * heads, ATTENTION_THREADS);
        // SAFETY: the kernel's arguments; the sizes were checked, and the context is exclusive.
        unsafe { self.launch(window::window_attention, shape, &arguments) }
    }

    fn add_window_mean_in_place(&self, windows: View<'_, Self>, mut x: ViewMut<'_, Self>) -> Result<()> {
        check_mean(&windows, &x.as_view())?;
        if x.rows() * x.columns() == 0 {
            return Ok(());
        }
        let arguments = [
            Argument::from(windows.address()),
            Argument::from(x.address()),
            Argument::from(x.rows()),
            Argument::from(x.columns()),
            Argument::from(windows.row_stride()),
            Argument::from(x.row_stride()),
        ];
        let shape = Shape::threads(x.rows() * x.columns(), MEAN_THREADS);
        // SAFETY: the kernel's arguments; the sizes were checked, and x is exclusive.
        unsafe { self.launch(window::add_window_mean, shape, &arguments) }
    }
}

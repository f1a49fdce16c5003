//! Kernels by name.

/// A kernel as host code: takes the addresses of its arguments.
#[cfg(feature = "emulated")]
pub type HostKernel = unsafe extern "C" fn(*const *const std::ffi::c_void);

/// A text of kernels, loaded into a device once.
#[derive(Debug)]
pub struct Module {
    /// The source's name, for reports.
    pub name: &'static str,
    /// PTX for sm_20, which every driver from 2014 on compiles for its card.
    pub ptx: &'static str,
    /// The kernels' names in the text.
    pub kernels: &'static [&'static str],
    /// The same kernels as host code.
    #[cfg(feature = "emulated")]
    pub host: &'static [HostKernel],
}

/// One kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The text that it stands in.
    pub module: &'static Module,
    /// Which of the module's kernels it is.
    pub index: usize,
}

impl Kernel {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.module.kernels[self.index]
    }
}

/// Declares the kernels of one source: `gpu_module!(softmax: softmax, causal_softmax)` makes a module `softmax` with the
/// constants `SOFTMAX` and `CAUSAL_SOFTMAX` would need names; they are the kernels' own names as functions.
#[macro_export]
macro_rules! gpu_module {
    ($visibility:vis $module:ident: $path:literal { $($kernel:ident = $index:literal),+ $(,)? }) => {
        $visibility mod $module {
            //! The kernels of one CUDA source.

            #[cfg(feature = "emulated")]
            #[allow(clashing_extern_declarations, reason = "names of the host build")]
            mod host {
                unsafe extern "C" {
                    $(pub(super) fn $kernel(arguments: *const *const ::std::ffi::c_void);)+
                }
            }

            pub(crate) static MODULE: $crate::gpu::Module = $crate::gpu::Module {
                name: stringify!($module),
                ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)),
                kernels: &[$(stringify!($kernel)),+],
                #[cfg(feature = "emulated")]
                host: &[$(host::$kernel),+],
            };

            $(
                #[allow(non_upper_case_globals, reason = "a kernel's own name")]
                pub(crate) const $kernel: $crate::gpu::Kernel = $crate::gpu::Kernel { module: &MODULE, index: $index };
            )+
        }
    };
}

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

/// Declares the kernels of one CUDA source: a module with the text and one constant a kernel, under the kernel's own name.
///
/// `gpu_module!(pub(crate) rotary: "kernels/rotary.ptx" { rotary = 0 })` makes `rotary::rotary`, a [`Kernel`]; the path starts
/// at the crate's root, the numbers count from 0.
#[macro_export]
macro_rules! gpu_module {
    ($visibility:vis $module:ident: $path:literal { $($kernel:ident = $index:literal),+ $(,)? }) => {
        $visibility mod $module {
            //! The kernels of one CUDA source.

            #[cfg(feature = "emulated")]
            mod host {
                unsafe extern "C" {
                    $(
                        #[link_name = concat!("emulated_", stringify!($kernel))]
                        pub(super) fn $kernel(arguments: *const *const ::std::ffi::c_void);
                    )+
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

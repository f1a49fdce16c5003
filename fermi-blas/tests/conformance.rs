//! The conformance suite on the CPU, with one thread and with several.

use fermi_blas::{Cpu, Instructions, conformance_tests};

conformance_tests!(one_thread, Cpu::with_threads(1).unwrap());
conformance_tests!(three_threads, Cpu::with_threads(3).unwrap());

// Every path of the kernels that this processor has; a processor without AVX runs one path under several names.
conformance_tests!(baseline, Cpu::builder().threads(2).instructions(Instructions::Baseline).build().unwrap());
conformance_tests!(avx2, Cpu::builder().threads(2).instructions(Instructions::Avx2).build().unwrap());
conformance_tests!(avx512, Cpu::builder().threads(2).instructions(Instructions::Avx512).build().unwrap());

#[cfg(feature = "emulated")]
mod emulated {
    use fermi_blas::{Emulated, Order};

    fermi_blas::conformance_tests!(forward, Emulated::emulated(Order::Forward).unwrap());
    fermi_blas::conformance_tests!(backward, Emulated::emulated(Order::Backward).unwrap());
    fermi_blas::conformance_tests!(shuffled, Emulated::emulated(Order::Shuffled).unwrap());
}

#[cfg(feature = "cuda")]
fermi_blas::conformance_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    fermi_blas::Cuda::new(0).unwrap()
);

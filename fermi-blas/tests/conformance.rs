//! The conformance suite on the CPU, with one thread and with several.

use fermi_blas::{Cpu, conformance_tests};

conformance_tests!(one_thread, Cpu::with_threads(1).unwrap());
conformance_tests!(three_threads, Cpu::with_threads(3).unwrap());

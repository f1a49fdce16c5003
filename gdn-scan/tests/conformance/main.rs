//! What every device must do, checked against float64: the processor, the emulated kernels and a card.
//!
//! Sizes are small, since an emulated thread costs a switch of stacks at every barrier.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod errors;
mod front;
mod golden;
mod scan;

use fermi_blas::Cpu;

/// A module of tests that runs all of these checks on one device.
macro_rules! conformance_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        conformance_tests!(@each [$(#[$attribute])*] $module, $device,
            scan: every_length_in_every_mode, scan: the_models_width, scan: grouped_heads_and_odd_widths,
            scan: wide_keys_and_values, scan: long_chunks, scan: options, scan: strong_decays, scan: strengths_zero_and_one,
            scan: cut_anywhere, scan: sizes_of_zero, scan: gaps_between_rows, scan: unused_scratch_is_kept,
            front: convolutions_cut_anywhere, front: convolutions_of_many_tokens, front: activations,
            front: convolution_keeps_to_its_columns, front: gates_equal_float64, front: gates_keep_to_their_columns,
            golden: cases, golden: convolutions, golden: gates,
            errors: chunks_of_no_tokens, errors: too_little_scratch, errors: gates_that_do_not_fit);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($file:ident: $name:ident),*) => {
        mod $module {
            use super::*;
            $(conformance_tests!(@one $attributes $file $name, $device);)*
        }
    };
    (@one [$(#[$attribute:meta])*] $file:ident $name:ident, $device:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            $file::$name(&$device);
        }
    };
}

conformance_tests!(cpu, Cpu::with_threads(2).unwrap());

#[cfg(feature = "emulated")]
mod emulated {
    use fermi_blas::{Emulated, Order};

    use super::{errors, front, golden, scan};

    conformance_tests!(forward, Emulated::emulated(Order::Forward).unwrap());
    conformance_tests!(backward, Emulated::emulated(Order::Backward).unwrap());
    conformance_tests!(shuffled, Emulated::emulated(Order::Shuffled).unwrap());
}

#[cfg(feature = "cuda")]
conformance_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    fermi_blas::Cuda::new(0).unwrap()
);

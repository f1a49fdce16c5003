//! What every backend must do, checked against float64: sizes 0, 1 and odd, rows with gaps, interleaved batches.
//!
//! Each function takes a device and panics where it fails. [`conformance_tests!`](crate::conformance_tests) makes a test of
//! each.

#![allow(clippy::unwrap_used, reason = "a device that fails fails the test")]

mod activation;
mod argmax;
mod memory;
mod norm;
mod product;
mod rotary;
mod softmax;
mod weight;

pub use activation::{activation, activation_edges, gate};
pub use argmax::argmax;
pub use memory::{add, copy, memory, read_and_write};
pub use norm::{gated_rms_norm, large_values, layer_norm, rms_norm, rms_norm_of_heads, weights_of_one_row};
pub use product::{gemm, gemm_batched, gemm_batched_by_two_threads, gemm_shapes};
pub use rotary::rotary;
pub use softmax::{causal_softmax, softmax};
pub use weight::{dequantize, gather, gemv, groups_that_are_not_finite, multiply, small_groups};

/// Rows and columns that every row operation is tried on.
const SIZES: [(usize, usize); 9] =
    [(0, 5), (3, 0), (1, 1), (2, 7), (5, 64), (3, 65), (1, 1152), (17, 129), (300, 72)];

/// Elements between the rows.
const GAPS: [usize; 2] = [0, 3];

/// A module of tests that runs the whole conformance suite on one device.
///
/// ```
/// use fermi_blas::Cpu;
/// fermi_blas::conformance_tests!(cpu, Cpu::new().unwrap());
/// fermi_blas::conformance_tests!(#[ignore = "slow"] one_thread, Cpu::with_threads(1).unwrap());
/// ```
#[macro_export]
macro_rules! conformance_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        $crate::conformance_tests!(@each [$(#[$attribute])*] $module, $device,
            read_and_write copy add memory gemm gemm_shapes gemm_batched gemm_batched_by_two_threads gemv
            dequantize gather multiply small_groups groups_that_are_not_finite layer_norm rms_norm
            rms_norm_of_heads gated_rms_norm large_values weights_of_one_row softmax causal_softmax rotary
            activation activation_edges gate argmax);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($name:ident)*) => {
        mod $module {
            #[allow(unused_imports, reason = "the device's expression may name what stands around the macro")]
            use super::*;
            $($crate::conformance_tests!(@one $attributes $name, $device);)*
        }
    };
    (@one [$(#[$attribute:meta])*] $name:ident, $device:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            $crate::testing::conformance::$name(&$device);
        }
    };
}

//! A pass allocates nothing once its scratch is there.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

use fermi_blas::testing::allocation::{CountingAllocator, count};
use fermi_blas::testing::uniform;
use fermi_blas::{Cpu, Matrix};
use gdn_scan::{CausalConv, Gates, Scan, ScanBackend, ScanInputs, ScanShape};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_pass_allocates_nothing() {
    // Sizes that are worth sharing among threads.
    let (tokens, heads, width, channels) = (130, 8, 64, 3 * 8 * 64);
    let device = Cpu::with_threads(2).unwrap();
    let matrix = |rows, columns| {
        Matrix::from_slice(&device, rows, columns, &uniform("allocation", rows * columns)).unwrap()
    };
    let shape = ScanShape::new(heads, heads, width, width).unwrap();
    let (x, weight, small, one) =
        (matrix(tokens, channels), matrix(4, channels), matrix(tokens, heads), matrix(1, heads));
    let (mut past, mut mixed) = (matrix(3, channels), matrix(tokens, channels));
    let (mut g, mut beta) = (matrix(tokens, heads), matrix(tokens, heads));
    let (mut state, mut out) = (matrix(heads * width, width), matrix(tokens, heads * width));
    let mut scratch = matrix(1, device.chunk_scratch_len(shape, tokens, 64));
    let mut pass = || {
        let conv = CausalConv::new(x.view(), weight.view(), past.view_mut(), mixed.view_mut()).unwrap();
        device.causal_conv(conv).unwrap();
        device
            .gates(Gates {
                a: small.view(),
                b: small.view(),
                a_log: one.view(),
                dt_bias: one.view(),
                g: g.view_mut(),
                beta: beta.view_mut(),
            })
            .unwrap();
        let part = |index: usize| {
            mixed.view().column_range(index * heads * width..(index + 1) * heads * width).unwrap()
        };
        let inputs = ScanInputs { q: part(0), k: part(1), v: part(2), g: g.view(), beta: beta.view() };
        let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap();
        device.chunk_forward(scan, 64, scratch.view_mut()).unwrap();
        let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap();
        device.recurrent_forward(scan).unwrap();
    };
    // The pool's threads start on the first pass; one that finds its queue full may still let it grow later, so what
    // counts is that passes without any allocation follow.
    pass();
    let quiet = (0..20).filter(|_| count(&mut pass).1.own == 0).count();
    assert!(quiet >= 18, "only {quiet} of 20 passes allocated nothing");
}

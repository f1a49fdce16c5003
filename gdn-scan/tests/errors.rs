//! Bad sizes are typed errors that name the axis, and leave the state as it was.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod common;

use common::{Inputs, Sizes};
use fermi_blas::{Cpu, Matrix};
use gdn_scan::{
    CausalConv, Error, Gates, Mode, Scan, ScanBackend, ScanInputs, ScanShape, causal_conv1d,
    gated_delta_rule, gated_rms_norm,
};
use ndarray::{Array1, Array2, s};

fn axis(error: &Error) -> &'static str {
    match error {
        Error::Shape { axis, .. } => axis,
        other => panic!("{other}"),
    }
}

#[test]
fn arrays_that_do_not_fit() {
    let inputs = Inputs::new("errors", Sizes::new(5, (2, 4), (8, 6)));
    let args = inputs.args();
    let cases = [
        ("k tokens", gdn_scan::ScanArgs { k: args.k.slice_move(s![..4, .., ..]), ..args }),
        ("k heads", gdn_scan::ScanArgs { k: args.k.slice_move(s![.., ..1, ..]), ..args }),
        ("k width", gdn_scan::ScanArgs { k: args.k.slice_move(s![.., .., ..7]), ..args }),
        ("v tokens", gdn_scan::ScanArgs { v: args.v.slice_move(s![1.., .., ..]), ..args }),
        ("g heads", gdn_scan::ScanArgs { v: args.v.slice_move(s![.., ..2, ..]), ..args }),
        ("g tokens", gdn_scan::ScanArgs { g: args.g.slice_move(s![1.., ..]), ..args }),
        ("beta tokens", gdn_scan::ScanArgs { beta: args.beta.slice_move(s![1.., ..]), ..args }),
        ("beta heads", gdn_scan::ScanArgs { beta: args.beta.slice_move(s![.., 1..]), ..args }),
        ("state value width", gdn_scan::ScanArgs { v: args.v.slice_move(s![.., .., ..5]), ..args }),
    ];
    for (expected, args) in cases {
        let mut state = inputs.s0.clone();
        let error = gated_delta_rule(args, &mut state, Mode::default()).unwrap_err();
        assert_eq!(axis(&error), expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(state, inputs.s0);
    }
    for (expected, mut state) in [
        ("state heads", inputs.s0.slice(s![1.., .., ..]).to_owned()),
        ("state key width", inputs.s0.slice(s![.., 1.., ..]).to_owned()),
    ] {
        let error = gated_delta_rule(args, &mut state, Mode::Sequential).unwrap_err();
        assert_eq!(axis(&error), expected);
    }
}

#[test]
fn chunks_of_no_tokens() {
    let inputs = Inputs::new("errors", Sizes::new(5, (2, 4), (8, 6)));
    let mut state = inputs.s0.clone();
    let error = gated_delta_rule(inputs.args(), &mut state, Mode::Chunked { chunk_len: 0 }).unwrap_err();
    assert!(matches!(error, Error::EmptyChunk { .. }), "{error}");
    assert_eq!(state, inputs.s0);
}

#[test]
fn convolutions_and_norms_that_do_not_fit() {
    let (x, weight) = (Array2::<f32>::zeros((5, 8)), Array2::<f32>::zeros((8, 4)));
    let conv = |weight: &Array2<f32>, mut state: Array2<f32>| {
        causal_conv1d(x.view(), weight.view(), &mut state, None).unwrap_err()
    };
    assert_eq!(axis(&conv(&weight, Array2::zeros((4, 8)))), "state inputs");
    assert_eq!(axis(&conv(&weight, Array2::zeros((3, 7)))), "state channels");
    assert_eq!(axis(&conv(&Array2::zeros((7, 4)), Array2::zeros((3, 8)))), "weight channels");
    let error = conv(&Array2::zeros((8, 0)), Array2::zeros((0, 8)));
    assert!(matches!(error, Error::NoTaps { .. }), "{error}");
    let weight = Array1::<f32>::zeros(7);
    let error = gated_rms_norm(x.view(), x.view(), weight.view(), 1e-6).unwrap_err();
    assert_eq!(axis(&error), "weight width");
}

#[test]
fn views_that_do_not_fit() {
    let device = Cpu::with_threads(1).unwrap();
    let matrix = |rows, columns| Matrix::<Cpu>::zeros(&device, rows, columns).unwrap();
    let shape = ScanShape::new(2, 4, 8, 6).unwrap();
    let (keys, values, gate) = (matrix(5, 16), matrix(5, 24), matrix(5, 4));
    let inputs =
        ScanInputs { q: keys.view(), k: keys.view(), v: values.view(), g: gate.view(), beta: gate.view() };
    let (mut state, mut out) = (matrix(32, 6), matrix(5, 24));
    let mut scratch = matrix(1, device.chunk_scratch_len(shape, 5, 64) - 1);
    let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap();
    let error = device.chunk_forward(scan, 64, scratch.view_mut()).unwrap_err();
    assert!(matches!(error, Error::Scratch { needed, available, .. } if needed == available + 1), "{error}");

    let mut wide = matrix(32, 7);
    let gaps = wide.view_mut().column_range(0..6).unwrap();
    assert_eq!(axis(&Scan::new(shape, inputs, gaps, out.view_mut()).unwrap_err()), "state row stride");
    let inputs = ScanInputs { q: values.view(), ..inputs };
    assert_eq!(axis(&Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap_err()), "q columns");

    let (x, weight, mut past) = (matrix(5, 8), matrix(4, 8), matrix(2, 8));
    let mut out = matrix(5, 8);
    let error = CausalConv::new(x.view(), weight.view(), past.view_mut(), out.view_mut()).unwrap_err();
    assert_eq!(axis(&error), "state rows");

    let (a, one, mut g, mut beta) = (matrix(5, 4), matrix(1, 4), matrix(5, 4), matrix(4, 4));
    let gates = Gates {
        a: a.view(),
        b: a.view(),
        a_log: one.view(),
        dt_bias: one.view(),
        g: g.view_mut(),
        beta: beta.view_mut(),
    };
    assert_eq!(axis(&device.gates(gates).unwrap_err()), "beta rows");
}

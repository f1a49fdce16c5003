//! The same errors from every device, and nothing written.

use fermi_blas::Matrix;
use fermi_blas::testing::uniform;
use gdn_scan::{Error, Gates, Scan, ScanBackend, ScanInputs, ScanShape};

/// Runs a scan of five tokens with `missing` values of scratch too few.
fn chunked<B: ScanBackend>(device: &B, chunk_len: usize, missing: usize) -> Error {
    let matrix =
        |rows, columns| Matrix::from_slice(device, rows, columns, &uniform("errors", rows * columns));
    let shape = ScanShape::new(2, 4, 8, 6).unwrap();
    let (keys, values, gate) = (matrix(5, 16).unwrap(), matrix(5, 24).unwrap(), matrix(5, 4).unwrap());
    let inputs =
        ScanInputs { q: keys.view(), k: keys.view(), v: values.view(), g: gate.view(), beta: gate.view() };
    let (mut state, mut out) = (matrix(32, 6).unwrap(), matrix(5, 24).unwrap());
    let before = (state.to_vec(device).unwrap(), out.to_vec(device).unwrap());
    let needed = device.chunk_scratch_len(shape, 5, chunk_len);
    let mut scratch = Matrix::zeros(device, 1, needed - missing).unwrap();
    let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap();
    let error = device.chunk_forward(scan, chunk_len, scratch.view_mut()).unwrap_err();
    assert_eq!((state.to_vec(device).unwrap(), out.to_vec(device).unwrap()), before);
    error
}

pub(crate) fn chunks_of_no_tokens<B: ScanBackend>(device: &B) {
    let error = chunked(device, 0, 0);
    assert!(matches!(error, Error::EmptyChunk { operation: "chunk_forward" }), "{error}");
}

pub(crate) fn too_little_scratch<B: ScanBackend>(device: &B) {
    for chunk_len in [1, 4, 64] {
        let error = chunked(device, chunk_len, 1);
        assert!(
            matches!(error, Error::Scratch { needed, available, .. } if needed == available + 1),
            "{error}"
        );
    }
    // An absurd size is a large number, not an overflow.
    let shape = ScanShape::new(1, 1, usize::MAX / 2, usize::MAX / 3).unwrap();
    assert!(device.chunk_scratch_len(shape, usize::MAX, usize::MAX) > usize::MAX / 4);
}

pub(crate) fn gates_that_do_not_fit<B: ScanBackend>(device: &B) {
    let matrix = |rows, columns| Matrix::<B>::zeros(device, rows, columns).unwrap();
    let (a, one, mut g, mut beta) = (matrix(5, 4), matrix(1, 4), matrix(5, 4), matrix(4, 4));
    let gates = Gates {
        a: a.view(),
        b: a.view(),
        a_log: one.view(),
        dt_bias: one.view(),
        g: g.view_mut(),
        beta: beta.view_mut(),
    };
    let error = device.gates(gates).unwrap_err();
    assert!(matches!(error, Error::Shape { axis: "beta rows", expected: 5, actual: 4, .. }), "{error}");
}

//! Laws of the scan on any device.

use fermi_blas::Matrix;
use fermi_blas::testing::{Held, uniform};
use gdn_scan::{Mode, Options, Scan, ScanBackend, ScanInputs, ScanShape};
use ndarray::{Array2, Array3, s};

use crate::common::{Inputs, Sizes, assert_near, naive_gated_delta_rule};

/// Every way to go through few tokens.
const MODES: [Mode; 6] = [
    Mode::Sequential,
    Mode::Chunked { chunk_len: 1 },
    Mode::Chunked { chunk_len: 5 },
    Mode::Chunked { chunk_len: 16 },
    Mode::Chunked { chunk_len: 64 },
    Mode::Chunked { chunk_len: usize::MAX },
];

/// Outputs and the state behind the tokens `start` to before `end`; every matrix has `gap` guarded values between its rows.
fn run<B: ScanBackend>(
    device: &B,
    inputs: &Inputs,
    (start, end): (usize, usize),
    state: &Array3<f32>,
    (mode, options, gap): (Mode, Options, usize),
) -> (Array3<f32>, Array3<f32>) {
    let tokens = end - start;
    let ((_, key_heads, key_width), (_, value_heads, value_width)) = (inputs.q.dim(), inputs.v.dim());
    let held = |values: Vec<f32>, columns: usize| Held::new(device, tokens, columns, &values, gap);
    let cube = |x: &Array3<f32>| x.slice(s![start..end, .., ..]).iter().copied().collect::<Vec<f32>>();
    let flat = |x: &Array2<f32>| x.slice(s![start..end, ..]).iter().copied().collect::<Vec<f32>>();
    let q = held(cube(&inputs.q), key_heads * key_width);
    let k = held(cube(&inputs.k), key_heads * key_width);
    let v = held(cube(&inputs.v), value_heads * value_width);
    let (g, beta) = (held(flat(&inputs.g), value_heads), held(flat(&inputs.beta), value_heads));
    let mut out = held(vec![f32::NAN; tokens * value_heads * value_width], value_heads * value_width);
    let values: Vec<f32> = state.iter().copied().collect();
    let mut state = Matrix::from_slice(device, value_heads * key_width, value_width, &values).unwrap();
    let shape = ScanShape::new(key_heads, value_heads, key_width, value_width).unwrap();
    let views = ScanInputs { q: q.view(), k: k.view(), v: v.view(), g: g.view(), beta: beta.view() };
    let mut scan = Scan::new(shape, views, state.view_mut(), out.view_mut()).unwrap();
    scan = scan.l2_normalize(options.l2_normalize);
    if let Some(scale) = options.scale {
        scan = scan.scale(scale);
    }
    match mode {
        Mode::Sequential => device.recurrent_forward(scan).unwrap(),
        Mode::Chunked { chunk_len } => {
            let len = device.chunk_scratch_len(shape, tokens, chunk_len);
            let mut scratch = Matrix::from_slice(device, 1, len, &vec![f32::NAN; len]).unwrap();
            device.chunk_forward(scan, chunk_len, scratch.view_mut()).unwrap();
        }
    }
    (
        Array3::from_shape_vec((tokens, value_heads, value_width), out.values()).unwrap(),
        Array3::from_shape_vec((value_heads, key_width, value_width), state.to_vec(device).unwrap()).unwrap(),
    )
}

/// All tokens from the inputs' own state.
fn run_all<B: ScanBackend>(
    device: &B,
    inputs: &Inputs,
    mode: Mode,
    options: Options,
) -> (Array3<f32>, Array3<f32>) {
    run(device, inputs, (0, inputs.g.dim().0), &inputs.s0, (mode, options, 0))
}

fn check_with<B: ScanBackend>(device: &B, inputs: &Inputs, modes: &[Mode], options: Options) {
    let (out, state) = naive_gated_delta_rule(inputs, options);
    for &mode in modes {
        let (actual_out, actual_state) = run_all(device, inputs, mode, options);
        assert_near(&format!("{mode:?} out"), &actual_out, &out);
        assert_near(&format!("{mode:?} state"), &actual_state, &state);
    }
}

fn check<B: ScanBackend>(device: &B, inputs: &Inputs, modes: &[Mode]) {
    check_with(device, inputs, modes, Options::default());
}

/// Outputs and the final state, with the options of the models.
pub(crate) fn forward<B: ScanBackend>(device: &B, inputs: &Inputs, mode: Mode) -> (Array3<f32>, Array3<f32>) {
    run_all(device, inputs, mode, Options::default())
}

pub(crate) fn every_length_in_every_mode<B: ScanBackend>(device: &B) {
    for tokens in [1, 2, 15, 16, 17, 33, 64, 65] {
        check(device, &Inputs::new("length", Sizes::new(tokens, (1, 1), (16, 16))), &MODES);
    }
}

pub(crate) fn the_models_width<B: ScanBackend>(device: &B) {
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 16 }, Mode::Chunked { chunk_len: 64 }];
    check(device, &Inputs::new("width", Sizes::new(70, (1, 1), (128, 128))), &modes);
    // keys as wide, values not; several heads; a third chunk, and a fourth that is short
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 64 }];
    check(device, &Inputs::new("narrow values", Sizes::new(200, (2, 4), (128, 20))), &modes);
}

pub(crate) fn grouped_heads_and_odd_widths<B: ScanBackend>(device: &B) {
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 5 }, Mode::Chunked { chunk_len: 16 }];
    check(device, &Inputs::new("odd", Sizes::new(37, (2, 6), (24, 40))), &modes);
    check(device, &Inputs::new("odder", Sizes::new(35, (1, 3), (7, 33))), &modes);
    check(device, &Inputs::new("narrow", Sizes::new(20, (2, 2), (1, 1))), &MODES);
}

pub(crate) fn wide_keys_and_values<B: ScanBackend>(device: &B) {
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 9 }, Mode::Chunked { chunk_len: 64 }];
    check(device, &Inputs::new("wide", Sizes::new(20, (1, 2), (200, 17))), &modes);
    // Wider than a state that a block can keep.
    check(device, &Inputs::new("wider", Sizes::new(20, (1, 2), (300, 17))), &modes);
    check(device, &Inputs::new("flat", Sizes::new(20, (1, 1), (2, 200))), &modes);
}

pub(crate) fn long_chunks<B: ScanBackend>(device: &B) {
    let modes = [Mode::Chunked { chunk_len: 70 }, Mode::Chunked { chunk_len: 100 }];
    for widths in [(20, 12), (150, 5), (300, 5)] {
        check(device, &Inputs::new("long", Sizes::new(150, (1, 2), widths)), &modes);
    }
}

pub(crate) fn options<B: ScanBackend>(device: &B) {
    let inputs = Inputs::new("options", Sizes::new(40, (2, 2), (8, 8)));
    // Keys as they are may be longer than 1, where the rule itself is unstable: small ones show what is meant.
    let inputs = Inputs { k: inputs.k.mapv(|x| 0.4 * x), ..inputs };
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 16 }];
    check_with(device, &inputs, &modes, Options { scale: Some(0.25), l2_normalize: None });
    check_with(device, &inputs, &modes, Options { scale: Some(3.0), ..Options::default() });
}

pub(crate) fn strong_decays<B: ScanBackend>(device: &B) {
    let base = Inputs::new("decays", Sizes::new(70, (1, 2), (16, 16)));
    let small = base.g.mapv(|g| 0.099 * g - 0.001);
    let single = |at: usize, strong: f32, others: &Array2<f32>| {
        let mut g = others.clone();
        g.slice_mut(s![at, ..]).fill(strong);
        g
    };
    let zeros = Array2::zeros(base.g.dim());
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 64 }, Mode::Chunked { chunk_len: 70 }];
    for g in [
        zeros.mapv(|_: f32| -2.0),
        zeros.mapv(|_| -30.0),
        zeros.mapv(|_| -1e4),
        zeros.mapv(|_| f32::NEG_INFINITY),
        single(20, -90.0, &zeros),
        single(0, -1e4, &small),
        single(7, -1e4, &small),
        single(63, -1e4, &small),
        zeros,
    ] {
        check(device, &Inputs { g, ..base.clone() }, &modes);
    }
}

pub(crate) fn strengths_zero_and_one<B: ScanBackend>(device: &B) {
    let modes = [Mode::Sequential, Mode::Chunked { chunk_len: 16 }, Mode::Chunked { chunk_len: 64 }];
    for beta in [0.0, 1.0] {
        let mut inputs = Inputs::new("strength", Sizes::new(40, (1, 1), (16, 16)));
        inputs.beta.fill(beta);
        check(device, &inputs, &modes);
        inputs.g.fill(0.0);
        check(device, &inputs, &modes);
    }
}

pub(crate) fn cut_anywhere<B: ScanBackend>(device: &B) {
    let inputs = Inputs::new("cut", Sizes::new(40, (1, 2), (16, 12)));
    let (expected, expected_state) = naive_gated_delta_rule(&inputs, Options::default());
    for cuts in [vec![0, 40], vec![17, 23], vec![1, 0, 33, 6], vec![1; 40]] {
        let (mut state, mut start) = (inputs.s0.clone(), 0);
        let mut out = Vec::new();
        for (index, len) in cuts.iter().enumerate() {
            let mode = if *len == 1 { Mode::Sequential } else { MODES[(index + len) % MODES.len()] };
            let part = run(device, &inputs, (start, start + len), &state, (mode, Options::default(), 0));
            out.extend(part.0);
            (state, start) = (part.1, start + len);
        }
        let out = Array3::from_shape_vec(expected.dim(), out).unwrap();
        assert_near(&format!("{cuts:?} out"), &out, &expected);
        assert_near(&format!("{cuts:?} state"), &state, &expected_state);
    }
}

pub(crate) fn sizes_of_zero<B: ScanBackend>(device: &B) {
    for sizes in [
        Sizes::new(0, (2, 4), (8, 8)),
        Sizes::new(3, (2, 0), (8, 8)),
        Sizes::new(3, (0, 0), (8, 8)),
        Sizes::new(3, (2, 2), (0, 8)),
        Sizes::new(3, (2, 2), (8, 0)),
    ] {
        let inputs = Inputs::new("zero", sizes);
        for mode in MODES {
            let (out, state) = forward(device, &inputs, mode);
            assert!(out.iter().all(|x| *x == 0.0), "{sizes:?} {mode:?}");
            if sizes.tokens == 0 {
                assert_eq!(state, inputs.s0);
            }
        }
    }
}

/// In a model, inputs are columns of wider matrices: neighbours are neither read nor written.
pub(crate) fn gaps_between_rows<B: ScanBackend>(device: &B) {
    let inputs = Inputs::new("gaps", Sizes::new(37, (2, 4), (16, 24)));
    for mode in [Mode::Sequential, Mode::Chunked { chunk_len: 16 }, Mode::Chunked { chunk_len: 64 }] {
        let result = |gap| run(device, &inputs, (0, 37), &inputs.s0, (mode, Options::default(), gap));
        assert_eq!(result(10), result(0), "{mode:?}");
    }
}

/// A pass of fewer tokens than the scratch was made for stays within its own part.
pub(crate) fn unused_scratch_is_kept<B: ScanBackend>(device: &B) {
    let shape = ScanShape::new(1, 1, 8, 8).unwrap();
    let (needed, most) = (device.chunk_scratch_len(shape, 9, 4), device.chunk_scratch_len(shape, 40, 4));
    assert!(needed <= most);
    let values = Matrix::from_slice(device, 9, 8, &uniform("scratch", 72)).unwrap();
    let gate = Matrix::from_slice(device, 9, 1, &[-0.5; 9]).unwrap();
    let inputs = ScanInputs {
        q: values.view(),
        k: values.view(),
        v: values.view(),
        g: gate.view(),
        beta: gate.view(),
    };
    let (mut state, mut out) = (Matrix::zeros(device, 8, 8).unwrap(), Matrix::zeros(device, 9, 8).unwrap());
    let mut scratch = Matrix::from_slice(device, 1, most, &vec![7.0; most]).unwrap();
    let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut()).unwrap();
    let held = device.memory();
    device.chunk_forward(scan, 4, scratch.view_mut()).unwrap();
    assert_eq!(device.memory(), held, "a pass allocates nothing");
    assert!(scratch.to_vec(device).unwrap()[needed..].iter().all(|x| *x == 7.0));
}

use fermi_blas::{Cpu, Matrix, RotaryTable, Weight};
use gdn_scan::ScanShape;

use super::{DeltaActivations, DeltaNet, DeltaState, Pass};

/// One head of width 1 whose three channels all see the input itself.
fn layer(device: &Cpu) -> DeltaNet<Cpu> {
    let matrix = |rows, columns, values: &[f32]| Matrix::from_slice(device, rows, columns, values).unwrap();
    let weight = |rows, values: &[f32]| Weight::F32(matrix(rows, 1, values));
    let taps: Vec<f32> = [1.0, 10.0, 100.0, 1000.0].into_iter().flat_map(|tap| [tap; 3]).collect();
    DeltaNet {
        in_proj_qkv: weight(3, &[1.0; 3]),
        in_proj_z: weight(1, &[1.0]),
        in_proj_b: weight(1, &[1.0]),
        in_proj_a: weight(1, &[1.0]),
        conv1d: matrix(4, 3, &taps),
        dt_bias: matrix(1, 1, &[0.0]),
        a_log: matrix(1, 1, &[0.0]),
        norm: matrix(1, 1, &[1.0]),
        out_proj: weight(1, &[1.0]),
        shape: ScanShape::new(1, 1, 1, 1).unwrap(),
        eps: 1e-6,
    }
}

#[test]
fn d1_a_prompt_shorter_than_the_kernel_from_any_split() {
    let device = Cpu::with_threads(1).unwrap();
    let layer = layer(&device);
    let zeros = |rows, columns| Matrix::zeros(&device, rows, columns).unwrap();
    let positions = Matrix::from_slice(&device, 1, 4, &[0, 1, 2, 3]).unwrap();
    let rotary = RotaryTable::new(&device, 4, 2, 1e4).unwrap();
    let inputs = [5.0, 7.0, 2.0, 3.0];
    let splits: [&[usize]; 8] =
        [&[4], &[1, 3], &[3, 1], &[2, 2], &[1, 1, 2], &[1, 2, 1], &[2, 1, 1], &[1, 1, 1, 1]];
    for split in splits {
        let mut state = DeltaState { conv: zeros(3, 3), recurrent: zeros(1, 1) };
        let mut activations = DeltaActivations {
            mixed_qkv: zeros(4, 3),
            qkv: zeros(4, 3),
            z: zeros(4, 1),
            b: zeros(4, 1),
            a: zeros(4, 1),
            g: zeros(4, 1),
            beta: zeros(4, 1),
            output: zeros(4, 1),
            scan: zeros(1, 0),
        };
        let (mut start, mut seen) = (0, Vec::new());
        for tokens in split {
            let pass = Pass {
                device: &device,
                history: start,
                positions: positions.view().column_range(start..start + tokens).unwrap(),
                rotary: &rotary,
                scan_chunk: 4,
            };
            let x = Matrix::from_slice(&device, *tokens, 1, &inputs[start..start + tokens]).unwrap();
            let (mut y, mut scratch) = (zeros(*tokens, 1), zeros(1, 0));
            layer
                .forward(&pass, x.view(), &mut state, &mut activations, scratch.view_mut(), y.view_mut())
                .unwrap();
            let qkv = activations.qkv.row_range(0..*tokens).unwrap().to_vec(&device).unwrap();
            seen.extend(qkv.chunks(3).map(|channels| channels[2]));
            start += tokens;
            if start == 1 {
                let kept = state.conv.to_vec(&device).unwrap();
                assert_eq!(kept, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0]);
            }
        }
        // Where silu(x) is x in float32.
        assert_eq!(seen, [5000.0, 7500.0, 2750.0, 3275.0], "{split:?}");
    }
}

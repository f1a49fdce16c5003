use fermi_blas::{Cpu, Matrix, RotaryTable, Weight};

use super::{Attention, AttentionActivations, KeyValues, Pass};

#[test]
fn d6_query_and_gate_alternate_by_head_and_only_the_query_is_normed() {
    let device = Cpu::with_threads(1).unwrap();
    let matrix = |rows, columns, values: &[f32]| Matrix::from_slice(&device, rows, columns, values).unwrap();
    let zeros = |rows, columns| Matrix::zeros(&device, rows, columns).unwrap();
    let one_to_eight: Vec<f32> = (1..=8).map(|x| x as f32).collect();
    let identity: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 1.0 } else { 0.0 }).collect();
    let layer = Attention {
        q_proj: Weight::F32(matrix(8, 1, &one_to_eight)),
        k_proj: Weight::F32(matrix(2, 1, &[1.0, 1.0])),
        v_proj: Weight::F32(matrix(2, 1, &[10.0, 20.0])),
        o_proj: Weight::F32(matrix(4, 4, &identity)),
        q_norm: zeros(1, 2),
        k_norm: zeros(1, 2),
        heads: 2,
        key_value_heads: 1,
        head_dim: 2,
        eps: 1e-6,
    };
    let mut cache = KeyValues { keys: zeros(1, 2), values: zeros(1, 2) };
    let mut activations =
        AttentionActivations { q_gate: zeros(1, 8), scores: zeros(1, 2), output: zeros(1, 4) };
    let positions = Matrix::from_slice(&device, 1, 1, &[0]).unwrap();
    let rotary = RotaryTable::new(&device, 1, 2, 1e4).unwrap();
    let pass =
        Pass { device: &device, history: 0, positions: positions.view(), rotary: &rotary, scan_chunk: 1 };
    let (x, mut y, mut scratch) = (matrix(1, 1, &[1.0]), zeros(1, 4), zeros(1, 0));
    layer.forward(&pass, x.view(), &mut cache, &mut activations, scratch.view_mut(), y.view_mut()).unwrap();

    let q_gate = activations.q_gate.to_vec(&device).unwrap();
    assert_eq!((&q_gate[2..4], &q_gate[6..8]), (&[3.0, 4.0][..], &[7.0, 8.0][..]), "gates as projected");
    for (query, [a, b]) in [(&q_gate[0..2], [1.0f32, 2.0]), (&q_gate[4..6], [5.0, 6.0])] {
        let root = ((a * a + b * b) / 2.0 + 1e-6).sqrt();
        assert!((query[0] - a / root).abs() < 1e-6 && (query[1] - b / root).abs() < 1e-6, "{query:?}");
    }
    // One key: its value, times the sigmoid of each gate.
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let expected = [10.0 * sigmoid(3.0), 20.0 * sigmoid(4.0), 10.0 * sigmoid(7.0), 20.0 * sigmoid(8.0)];
    for (y, expected) in y.to_vec(&device).unwrap().iter().zip(expected) {
        assert!((y - expected).abs() < 1e-5, "{y} {expected}");
    }
}

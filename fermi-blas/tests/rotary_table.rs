//! The rotary table against torch's (case D8).

use fermi_blas::testing::assert_near;
use fermi_blas::{Cpu, RotaryTable};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(|x| x.as_f64().expect("a number")).collect()
}

#[test]
fn cosines_and_sines_are_those_of_torch() {
    let device = Cpu::with_threads(1).unwrap();
    let golden: Value = serde_json::from_str(include_str!("data/rotary.json")).unwrap();
    for case in golden.as_array().unwrap() {
        let dim = case["rotary_dim"].as_u64().unwrap() as usize;
        let theta = case["theta"].as_f64().unwrap() as f32;
        let table = RotaryTable::new(&device, 16384, dim, theta).unwrap();
        let half = dim / 2;
        // torch's vectorised power misses the nearest float32 of some frequencies by a unit, which turns an angle by as
        // much of itself; never for the published model's base.
        let frequencies = if theta == 1e7 { vec![0.0; half] } else { numbers(&case["frequencies"]) };
        for (index, position) in numbers(&case["positions"]).into_iter().enumerate() {
            let row = position as usize..position as usize + 1;
            for (matrix, key) in [(&table.cosines, "cosines"), (&table.sines, "sines")] {
                let actual = matrix.row_range(row.clone()).unwrap().to_vec(&device).unwrap();
                let expected = &numbers(&case[key])[index * half..][..half];
                // Where the angles are the same float32 values, only the functions' last units may differ.
                let scales: Vec<f64> = frequencies.iter().map(|f| 1.0 + f * position).collect();
                assert_near(&format!("{key} of {position}"), &actual, expected, &scales, 1.2e-7);
            }
        }
    }
}

#[test]
fn d8_a_quarter_of_256_has_32_frequencies() {
    let device = Cpu::with_threads(1).unwrap();
    let table = RotaryTable::new(&device, 2, 256 / 4, 1e7).unwrap();
    assert_eq!(table.sines.columns(), 32);
    let sines = table.sines.row_range(1..2).unwrap().to_vec(&device).unwrap();
    assert!((sines[0] - 1.0f32.sin()).abs() < 1e-7);
    assert!((sines[31] / 1.654_82e-7 - 1.0).abs() < 1e-5);
}

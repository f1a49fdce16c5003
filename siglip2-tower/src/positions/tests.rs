use safetensors::SafeTensors;

use super::*;

fn golden() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/positions.safetensors")).unwrap()
}

fn positions(side: usize) -> Positions {
    Positions::new(side, PositionTable::new()).unwrap()
}

fn buckets(positions: &Positions, patches: usize) -> Vec<u8> {
    (0..patches).map(|index| positions.bucket(index, patches) as u8).collect()
}

fn fnv1a64(bytes: &[u8]) -> u64 {
    fermi_blas::synthetic::fnv1a64(bytes)
}

fn hashes(name: &str) -> Vec<u64> {
    let bytes = golden();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = tensors.tensor(name).unwrap();
    tensor.data().as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

#[test]
fn buckets_equal_the_reference_operator() {
    let bytes = golden();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    for side in [20, 30, 32, 60, 70] {
        let positions = positions(side);
        let ours: Vec<u8> = (1..=128).flat_map(|patches| buckets(&positions, patches)).collect();
        assert_eq!(ours, tensors.tensor(&format!("buckets.{side}")).unwrap().data(), "side {side}");
    }
}

#[test]
fn long_axes_equal_the_reference_operator() {
    let positions = positions(70);
    let ours: Vec<u64> = (1..1200).map(|patches| fnv1a64(&buckets(&positions, patches))).collect();
    assert_eq!(ours, hashes("hashes.70"));
}

#[test]
fn every_side_equals_the_reference_operator() {
    for (side, hash) in (2..=128).zip(hashes("hashes.sides")) {
        let positions = positions(side);
        let ours: Vec<u8> = (1..200).flat_map(|patches| buckets(&positions, patches)).collect();
        assert_eq!(fnv1a64(&ours), hash, "side {side}");
    }
}

#[test]
fn ids_of_two_grids_equal_the_reference_operator() {
    let bytes = golden();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let expected = tensors.tensor("ids.28x36.4x8").unwrap();
    let expected: Vec<u32> =
        expected.data().as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let (positions, mut ids) = (positions(70), Vec::new());
    positions.append(28, 36, &mut ids);
    positions.append(4, 8, &mut ids);
    assert_eq!(ids, expected);
}

#[test]
fn the_rule_is_not_integer_arithmetic() {
    let floor =
        |side: usize| (1..200).all(|n| (0..n).all(|i| positions(side).bucket(i, n) as usize == side * i / n));
    assert!(floor(70));
    assert!(!floor(60));
}

#[test]
fn a_side_of_one_has_one_bucket() {
    assert!(boundaries(1).is_empty());
    assert!(boundaries(0).is_empty());
    assert_eq!(buckets(&positions(1), 5), [0; 5]);
}

#[test]
fn a_table_wins_over_the_rule() {
    let table = PositionTable::new().with(vec![3, 1, 0]);
    let positions = Positions::new(4, table).unwrap();
    let mut ids = Vec::new();
    positions.append(3, 2, &mut ids);
    assert_eq!(ids, [12, 14, 4, 6, 0, 2]);
}

/// Older reference code took the coordinates from `arange(0, 1 - 1e-6, 1/n)`, which moves patches of some axes.
#[test]
fn older_coordinates_can_be_given_as_a_table() {
    let boundaries = boundaries(70);
    let older = |n: usize| -> Vec<u32> {
        let coordinate = |index: usize| (index as f64 * (1.0 / n as f64)) as f32;
        (0..n).map(|i| boundaries.partition_point(|b| *b <= coordinate(i)) as u32).collect()
    };
    let table = (1..=70).fold(PositionTable::new(), |table, n| table.with(older(n)));
    let positions = Positions::new(70, table).unwrap();
    for n in 1..=70 {
        let ours: Vec<u32> = (0..n).map(|index| positions.bucket(index, n)).collect();
        assert_eq!(ours, older(n));
    }
}

#[test]
fn a_bucket_outside_the_grid_is_an_error() {
    let error = Positions::new(4, PositionTable::new().with(vec![0, 4])).unwrap_err();
    let expected = "the position table for 2 patches holds 2 buckets, the largest 4, of 4 a side";
    assert_eq!(error.to_string(), expected);
}

//! The generator of random weights against its Python twin.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use fermi_blas::bf16;
use fermi_blas::synthetic::{self, Distribution, Sequence};
use half::f16;
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("data/synthetic.json")).unwrap()
}

fn integers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

#[test]
fn hashes_equal_pythons() {
    let golden = golden();
    for (name, hash) in golden["fnv1a64"].as_object().unwrap() {
        assert_eq!(synthetic::fnv1a64(name.as_bytes()).to_string(), hash.as_str().unwrap());
    }
    for (z, mixed) in golden["mix"].as_object().unwrap() {
        assert_eq!(synthetic::mix(z.parse().unwrap()).to_string(), mixed.as_str().unwrap());
    }
}

#[test]
fn weights_equal_pythons_bit_for_bit() {
    for case in golden()["weights"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let shape: Vec<usize> = integers(&case["shape"]).into_iter().map(|x| x as usize).collect();
        let seed = case["seed"].as_u64().unwrap();
        let distribution = Distribution::of_weight(name, &shape);
        assert_eq!(distribution.center, case["center"].as_f64().unwrap(), "{name}");
        assert_eq!(distribution.scale, case["scale"].as_f64().unwrap(), "{name}");
        let raw: Vec<u32> = (0..8).map(|index| Sequence::new(name, seed).raw(index)).collect();
        assert_eq!(raw, integers(&case["raw"]), "{name}");
        let narrow = |x: f32| match case["dtype"].as_str().unwrap() {
            "bfloat16" => bf16::from_f32(x).to_f32(),
            "float16" => f16::from_f32(x).to_f32(),
            _ => x,
        };
        let weight = synthetic::weight(name, &shape, seed);
        assert_eq!(weight.len(), shape.iter().product::<usize>());
        let bits: Vec<u32> = weight[..8].iter().map(|x| narrow(*x).to_bits()).collect();
        assert_eq!(bits, integers(&case["f32_bits"]), "{name}");
    }
}

#[test]
fn pixels_and_ids_equal_pythons() {
    let golden = golden();
    let pixels = &golden["pixel_values"];
    let (name, seed) = (pixels["name"].as_str().unwrap(), pixels["seed"].as_u64().unwrap());
    let values = synthetic::values(name, 8, seed, Distribution { center: 0.0, scale: 1.0 });
    let bits: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
    assert_eq!(bits, integers(&pixels["f32_bits"]));
    let ids = &golden["token_ids"];
    let below = ids["below"].as_u64().unwrap() as u32;
    let actual = synthetic::token_ids(ids["name"].as_str().unwrap(), 5, ids["seed"].as_u64().unwrap(), below);
    assert_eq!(actual, integers(&ids["ids"]));
}

#[test]
fn any_piece_equals_the_same_part_of_the_whole() {
    let distribution = Distribution { center: 1.0, scale: 0.5 };
    let whole = synthetic::values("w", 200_003, 3, distribution);
    let mut piece = vec![0.0; 150_000];
    Sequence::new("w", 3).fill(distribution, 50_001, &mut piece);
    assert_eq!(piece, whole[50_001..200_001]);
    assert!(synthetic::token_ids("w", 3, 0, 0).is_empty());
}

//! Headers of damaged files: a typed error, never a panic, never memory beyond the file's own size.

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::fs;

use fermi_blas::testing::Folder;
use fermi_blas::testing::allocation::{CountingAllocator, count};
use fermi_blas::{Checkpoint, Error};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Opens `bytes` as a checkpoint and reads what it claims to hold.
fn open(folder: &Folder, bytes: &[u8]) -> Result<usize, Error> {
    let path = folder.path().join("model.safetensors");
    fs::write(&path, bytes).unwrap();
    let (result, allocations) = count(|| {
        let checkpoint = Checkpoint::open(&path)?;
        for name in checkpoint.names() {
            let shape = checkpoint.info(name).unwrap().shape.clone();
            let _ = checkpoint.load_vec(name, &shape);
        }
        Ok(checkpoint.names().count())
    });
    // parsed headers take several times their text; a piece of reading takes 4 MiB
    assert!(allocations.peak_bytes < 64 * bytes.len() + (64 << 10), "{allocations:?} for {}", bytes.len());
    result
}

fn with_header(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn damaged(folder: &Folder) {
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        with_header(&format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#), 8)
    };
    assert_eq!(open(folder, &entry("F32", "[2]", "[0,8]")).unwrap(), 1);
    assert_eq!(open(folder, &with_header("{}", 0)).unwrap(), 0);
    let long = |length: u64| [&length.to_le_bytes()[..], b"{}"].concat();
    for bytes in [
        vec![],
        vec![1, 2, 3],
        long(3),
        long(u64::MAX),
        long(100_000_001),
        long(1),
        entry("F32", "[2]", "[0,4]"),
        entry("F32", "[2]", "[8,0]"),
        entry("F32", "[2]", "[4,12]"),
        entry("F32", "[3]", "[0,12]"),
        entry("F32", "[-1]", "[0,8]"),
        entry("F99", "[2]", "[0,8]"),
        entry("F32", "[9223372036854775807,2,4]", "[0,8]"),
        entry("F32", "[4611686018427387904,4]", "[0,0]"),
        entry("F32", "[2]", "[18446744073709551608,18446744073709551615]"),
        entry("F32", &format!("{}2{}", "[".repeat(5000), "]".repeat(5000)), "[0,8]"),
        with_header("[]", 0),
        with_header("{\"w\":3}", 0),
        with_header("\u{0}\u{1}", 0),
    ] {
        let result = open(folder, &bytes);
        assert!(matches!(result, Err(Error::Safetensors { .. })), "{result:?} for {bytes:?}");
    }
}

fn indexes(folder: &Folder) {
    let path = folder.path().join("model.safetensors.index.json");
    for text in ["", "[]", "{}", r#"{"weight_map":3}"#, r#"{"weight_map":{"w":3}}"#]
        .into_iter()
        .chain([r#"{"weight_map":{"w":"../w.safetensors"}}"#, r#"{"weight_map":{"w":".."}}"#])
    {
        fs::write(&path, text).unwrap();
        assert!(matches!(Checkpoint::open(folder.path()), Err(Error::ShardIndex { .. })), "{text}");
    }
    fs::write(&path, r#"{"weight_map":{"other":"model.safetensors"}}"#).unwrap();
    fs::write(folder.path().join("model.safetensors"), with_header("{}", 0)).unwrap();
    assert!(
        matches!(Checkpoint::open(folder.path()), Err(Error::MissingTensor { tensor, .. }) if tensor == "other")
    );
}

// One test in this file: the allocator counts the whole process.
#[test]
fn no_header_panics_or_takes_more_memory_than_its_file() {
    let folder = Folder::new("header");
    damaged(&folder);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let number = prop_oneof![Just("0".to_owned()), any::<u64>().prop_map(|n| n.to_string()), "[0-9]{1,3}"];
    let list = prop::collection::vec(number, 0..4).prop_map(|list| format!("[{}]", list.join(",")));
    let entry = (prop_oneof!["F32", "BF16", "I8", "F4", "BOOL", "[A-Z0-9]{0,4}"], list.clone(), list);
    let header = prop::collection::vec(entry, 0..4).prop_map(|entries| {
        let entry = |(index, (dtype, shape, offsets)): (usize, &(String, String, String))| {
            format!(r#""t{index}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
        };
        format!("{{{}}}", entries.iter().enumerate().map(entry).collect::<Vec<_>>().join(","))
    });
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        (header, 0usize..100).prop_map(|(header, data)| with_header(&header, data)),
        (".{0,80}", 0usize..20).prop_map(|(header, data)| with_header(&header, data)),
    ];
    runner
        .run(&bytes, |bytes| {
            let _ = open(&folder, &bytes);
            Ok(())
        })
        .unwrap();
    indexes(&folder);
}

//! Checkpoints: written and read back, in every type and precision, whole and in shards, damaged and incomplete (case D9).

#![allow(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use fermi_blas::testing::reference::naive_dequantize;
use fermi_blas::testing::{Folder, uniform};
use fermi_blas::{
    Backend, Blas, Checkpoint, CheckpointWriter, Cpu, Dtype, Error, Matrix, Precision, Sharding, TensorSpec,
    Weight, bf16, quantize,
};
use half::f16;

const FLOATS: [Dtype; 3] = [Dtype::F32, Dtype::F16, Dtype::BF16];

fn write(folder: &Path, tensors: &[(&str, Dtype, &[usize])], sharding: Sharding) {
    let specs = tensors.iter().flat_map(|(name, dtype, shape)| match dtype {
        Dtype::I8 => TensorSpec::q8(name, [shape[0], shape[1]]).to_vec(),
        _ => vec![TensorSpec::new(*name, *dtype, shape)],
    });
    let mut writer = CheckpointWriter::create(folder, specs, &BTreeMap::new(), sharding).unwrap();
    for (name, _, shape) in tensors {
        writer.append(name, &uniform(name, shape.iter().product())).unwrap();
    }
    writer.finish().unwrap();
}

fn rounded(dtype: Dtype, values: &[f32], columns: usize) -> Vec<f32> {
    match dtype {
        Dtype::F16 => values.iter().map(|x| f16::from_f32(*x).to_f32()).collect(),
        Dtype::BF16 => values.iter().map(|x| bf16::from_f32(*x).to_f32()).collect(),
        Dtype::I8 => {
            let (codes, scales) = quantize(values, columns);
            naive_dequantize(&codes, &scales, columns)
        }
        _ => values.to_vec(),
    }
}

fn expand(device: &Cpu, weight: &Weight<Cpu>) -> Vec<f32> {
    let mut values = Matrix::zeros(device, weight.rows(), weight.columns()).unwrap();
    device.dequantize(weight.view(), values.view_mut()).unwrap();
    values.to_vec(device).unwrap()
}

#[test]
fn every_type_is_read_in_every_precision() {
    let (folder, device) = (Folder::new("types"), Cpu::with_threads(2).unwrap());
    // larger than one piece of reading; a short last group; nothing; no columns
    let shapes: [&[usize]; 5] = [&[1100, 1030], &[3, 4304], &[1, 1], &[0, 64], &[5, 0]];
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::I8] {
        for shape in shapes {
            let path = folder.path().join(format!("{dtype:?}-{}x{}", shape[0], shape[1]));
            write(&path, &[("w", dtype, shape)], Sharding::default());
            let checkpoint = Checkpoint::open(&path).unwrap();
            let stored = rounded(dtype, &uniform("w", shape[0] * shape[1]), shape[1]);
            assert_eq!(checkpoint.load_vec("w", shape).unwrap(), stored);
            assert_eq!(checkpoint.load_matrix(&device, "w", shape).unwrap().to_vec(&device).unwrap(), stored);
            for (precision, as_dtype) in
                [(Precision::F32, Dtype::F32), (Precision::Bf16, Dtype::BF16), (Precision::Q8, Dtype::I8)]
            {
                let weight = checkpoint.load_weight(&device, "w", [shape[0], shape[1]], precision).unwrap();
                // what is stored in 8 bits is not rounded to 8 bits again
                let expected =
                    if dtype == as_dtype { stored.clone() } else { rounded(as_dtype, &stored, shape[1]) };
                assert_eq!(expand(&device, &weight), expected, "{dtype:?} as {precision:?}");
                let kept = match weight {
                    Weight::F32(_) => Precision::F32,
                    Weight::Bf16(_) => Precision::Bf16,
                    Weight::Q8(_) => Precision::Q8,
                };
                assert_eq!(kept, precision);
            }
        }
    }
}

#[test]
fn f3_eight_bits_err_by_half_a_scale_at_most() {
    let mut values = uniform("w", 2 * 4304);
    values[64..128].fill(0.0);
    values[128..192].iter_mut().for_each(|x| *x *= 1e-40);
    let (codes, scales) = quantize(&values, 4304);
    assert_eq!((codes.len(), scales.len()), (2 * 4304, 2 * 68));
    let expanded = naive_dequantize(&codes, &scales, 4304);
    assert_eq!(expanded[64..128], [0.0; 64]);
    for (index, (x, y)) in values.iter().zip(&expanded).enumerate() {
        let scale = scales[index / 4304 * 68 + index % 4304 / 64];
        // a group below the smallest normal scale becomes zero
        let allowed = if scale == 0.0 { 127.0 * f32::MIN_POSITIVE } else { 0.500_01 * scale };
        assert!((x - y).abs() <= allowed, "{index}: {x} became {y}");
        assert!(y.is_finite());
    }
}

#[test]
fn d9_shards_hold_the_same_tensors_as_one_file() {
    let folder = Folder::new("shards");
    let names: Vec<String> = (0..7).map(|i| format!("layers.{i}.weight")).collect();
    let tensors: Vec<(&str, Dtype, &[usize])> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), FLOATS[i % 3], [&[3usize, 5][..], &[70], &[]][i % 3]))
        .collect();
    let (one, three) = (folder.path().join("one"), folder.path().join("three"));
    write(&one, &tensors, Sharding::default());
    write(&three, &tensors, Sharding { max_tensors: 3, ..Sharding::default() });
    assert!(one.join("model.safetensors").is_file());
    let mut files: Vec<_> = fs::read_dir(&three)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let shards = (1..4).map(|i| format!("model-{i:05}-of-00003.safetensors"));
    let expected: Vec<String> = shards.chain(["model.safetensors.index.json".to_owned()]).collect();
    assert_eq!(files, expected);
    let (one, three) = (Checkpoint::open(&one).unwrap(), Checkpoint::open(&three).unwrap());
    assert!(one.names().eq(three.names()));
    for (name, _, shape) in &tensors {
        assert_eq!(one.load_vec(name, shape).unwrap(), three.load_vec(name, shape).unwrap());
    }
    let by_bytes = folder.path().join("bytes");
    write(&by_bytes, &tensors, Sharding { max_bytes: 1, ..Sharding::default() });
    assert!(by_bytes.join("model-00007-of-00007.safetensors").is_file());
}

#[test]
fn d9_a_missing_shard_is_named_and_a_stray_one_ignored() {
    let folder = Folder::new("stray");
    write(
        folder.path(),
        &[("a", Dtype::F32, &[2]), ("b", Dtype::F32, &[3])],
        Sharding { max_tensors: 1, ..Sharding::default() },
    );
    let second = folder.path().join("model-00002-of-00002.safetensors");
    fs::copy(&second, folder.path().join("model-00003-of-00002.safetensors")).unwrap();
    fs::write(folder.path().join("stray.safetensors"), b"not a tensor file").unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["a", "b"]);
    fs::remove_file(&second).unwrap();
    match Checkpoint::open(folder.path()) {
        Err(Error::MissingShard { shard, .. }) => assert_eq!(shard, "model-00002-of-00002.safetensors"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn d9_wrong_shapes_missing_and_unused_tensors_are_told() {
    let folder = Folder::new("shapes");
    let tensors: [(&str, Dtype, &[usize]); 3] =
        [("a", Dtype::F32, &[2, 3]), ("mtp.fc.weight", Dtype::BF16, &[4]), ("other", Dtype::F16, &[1])];
    write(folder.path(), &tensors, Sharding::default());
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    match checkpoint.load_vec("a", &[3, 2]) {
        Err(Error::TensorShape { tensor, expected, actual, path }) => {
            assert_eq!((tensor.as_str(), &expected[..], &actual[..]), ("a", &[3, 2][..], &[2, 3][..]));
            assert_eq!(path, folder.path().join("model.safetensors"));
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(checkpoint.load_vec("lm_head.weight", &[2]), Err(Error::MissingTensor { tensor, .. }) if tensor == "lm_head.weight")
    );
    checkpoint.load_vec("a", &[2, 3]).unwrap();
    assert_eq!(checkpoint.unused(), ["mtp.fc.weight", "other"]);
    assert!(matches!(Checkpoint::open(folder.path().join("nowhere")), Err(Error::NoCheckpoint { .. })));
}

#[test]
fn unknown_forms_and_types_are_refused() {
    let (folder, device) = (Folder::new("forms"), Cpu::with_threads(1).unwrap());
    let specs = [TensorSpec::new("ids", Dtype::I64, &[2]), TensorSpec::new("codes", Dtype::I8, &[4])];
    let mut writer =
        CheckpointWriter::create(folder.path(), specs, &BTreeMap::new(), Sharding::default()).unwrap();
    assert!(matches!(writer.append("ids", &[1.0, 2.0]), Err(Error::TensorType { .. })));
    assert!(matches!(writer.append("codes", &[1.0, 2.0]), Err(Error::TensorType { .. })));
    writer.append_bytes("ids", &[0; 16]).unwrap();
    writer.append_bytes("codes", &[0; 4]).unwrap();
    writer.finish().unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert!(
        matches!(checkpoint.load_vec("ids", &[2]), Err(Error::TensorType { dtype, .. }) if dtype == "I64")
    );
    assert!(matches!(checkpoint.load_vec("codes", &[4]), Err(Error::TensorType { .. })));

    let path = folder.path().join("newer");
    write(&path, &[("w", Dtype::I8, &[2, 64])], Sharding::default());
    let file = path.join("model.safetensors");
    let text = fs::read(&file).unwrap();
    let at = text.windows(5).position(|part| part == b":\"1\"}").unwrap();
    let mut newer = text.clone();
    newer[at + 2] = b'9';
    fs::write(&file, newer).unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    for precision in [Precision::F32, Precision::Bf16, Precision::Q8] {
        match checkpoint.load_weight(&device, "w", [2, 64], precision) {
            Err(Error::Q8Format { tensor, version, known, .. }) => {
                assert_eq!((tensor.as_str(), version.as_deref(), known), ("w", Some("9"), "1"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_writer_checks_names_and_lengths_and_cleans_up() {
    let folder = Folder::new("writer");
    let path = folder.path().join("new");
    let specs = || [TensorSpec::new("a", Dtype::F32, &[2]), TensorSpec::new("b", Dtype::BF16, &[3])];
    let create = |specs: &[TensorSpec]| {
        CheckpointWriter::create(&path, specs.to_vec(), &BTreeMap::new(), Sharding::default())
    };
    let mut writer = create(&specs()).unwrap();
    writer.append("b", &[1.0]).unwrap();
    writer.append("a", &[1.0, 2.0]).unwrap();
    assert!(matches!(writer.append("a", &[3.0]), Err(Error::TensorBytes { expected: 0, actual: 4, .. })));
    assert!(matches!(writer.append("c", &[3.0]), Err(Error::MissingTensor { .. })));
    assert!(matches!(writer.finish(), Err(Error::TensorBytes { tensor, .. }) if tensor == "b"));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "partial files stay behind");

    let twice = [specs()[0].clone(), specs()[0].clone()];
    assert!(matches!(create(&twice), Err(Error::DuplicateTensor { tensor }) if tensor == "a"));
    let huge = [TensorSpec::new("a", Dtype::F32, &[usize::MAX, 2])];
    assert!(matches!(create(&huge), Err(Error::SizeOverflow { .. })));
    let mut writer = create(&TensorSpec::q8("w", [2, 70])).unwrap();
    assert!(matches!(writer.append("w", &[0.0; 71]), Err(Error::Shape { .. })));
    writer.append("w", &[0.5; 70]).unwrap();
    writer.append("w", &[0.25; 70]).unwrap();
    writer.finish().unwrap();
    assert!(matches!(create(&specs()), Err(Error::CheckpointExists { .. })));
    let checkpoint = Checkpoint::open(&path).unwrap();
    assert_eq!(checkpoint.info("w.scale").unwrap().shape, [2, 2]);
    assert_eq!(checkpoint.load_vec("w.scale", &[2, 2]).unwrap()[2], 0.25 / 127.0);
}

#[test]
fn progress_ends_at_the_whole() {
    let (folder, device) = (Folder::new("progress"), Cpu::with_threads(1).unwrap());
    write(folder.path(), &[("a", Dtype::F32, &[2048, 1024]), ("b", Dtype::BF16, &[3])], Sharding::default());
    let (calls, last) = <(AtomicU64, AtomicU64)>::default();
    let shared = std::sync::Arc::new((calls, last));
    let seen = std::sync::Arc::clone(&shared);
    let checkpoint = Checkpoint::open(folder.path()).unwrap().with_progress(Box::new(move |bytes, all| {
        assert!(bytes <= all && all == 2048 * 1024 * 4 + 6);
        seen.0.fetch_add(1, Ordering::Relaxed);
        seen.1.store(bytes, Ordering::Relaxed);
    }));
    checkpoint.load_matrix(&device, "a", &[2048, 1024]).unwrap();
    checkpoint.load_vec("b", &[3]).unwrap();
    assert_eq!(shared.0.load(Ordering::Relaxed), 3);
    assert_eq!(shared.1.load(Ordering::Relaxed), 2048 * 1024 * 4 + 6);
    assert_eq!(device.memory().in_use, 0);
}

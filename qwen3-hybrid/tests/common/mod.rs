//! What the tests share: golden files and the random checkpoints that belong to them.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fermi_blas::{Checkpoint, CheckpointWriter, Cpu, Dtype, Sharding, TensorSpec, synthetic};
use gdn_scan::ScanBackend;
use qwen3_hybrid::{Backbone, Config, ModelTensor, Options};
use safetensors::SafeTensors;

/// Every golden config.
pub(crate) const CASES: [&str; 6] = ["base", "grouped", "conv3", "four_x", "real_heads", "text_only"];

/// How far a layer's output may be from the reference, relative to its largest magnitude: the reference's own float32 is up
/// to 8e-6 from float64, and another order of summation is as far again.
pub(crate) const LAYER: f64 = 2e-5;
/// How far logits may be, from the reference or from another split of the same prompt: what a layer may be off, through the
/// norm and the head.
pub(crate) const LOGITS: f64 = 5e-5;
/// Margins, relative to the largest logit, above which a greedy token must be the reference's: twice the tolerance of the
/// two logits that are compared.
pub(crate) const MARGIN: f32 = 1e-4;

/// A golden file.
pub(crate) struct Golden {
    bytes: Vec<u8>,
    facts: HashMap<String, String>,
}

/// A sampled tensor of a golden file.
pub(crate) struct Sampled {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    stride: usize,
    absmax: f64,
    values: Vec<f32>,
}

impl Sampled {
    /// The largest difference of the sampled values, relative to the tensor's largest magnitude.
    pub(crate) fn error(&self, values: &[f32]) -> f64 {
        assert_eq!(values.len(), self.rows * self.columns);
        self.error_of_first(values)
    }

    /// The same for the first rows alone.
    pub(crate) fn error_of_first(&self, values: &[f32]) -> f64 {
        assert!(!values.is_empty() && values.len() <= self.rows * self.columns);
        let sampled = values.iter().step_by(self.stride);
        assert!(sampled.len() <= self.values.len());
        let difference = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).abs();
        let error = sampled.zip(&self.values).map(difference);
        // `max` would pass over a NaN.
        error.fold(0.0, |largest: f64, error| if error <= largest { largest } else { error }) / self.absmax
    }
}

pub(crate) fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

impl Golden {
    pub(crate) fn open(case: &str) -> Self {
        let bytes = std::fs::read(data(&format!("{case}.safetensors"))).unwrap();
        let facts = SafeTensors::read_metadata(&bytes).unwrap().1.metadata().clone().unwrap();
        Self { bytes, facts }
    }

    pub(crate) fn fact(&self, key: &str) -> serde_json::Value {
        serde_json::from_str(&self.facts[key]).unwrap()
    }

    pub(crate) fn sizes(&self, key: &str) -> Vec<usize> {
        self.fact(key).as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.fact("seed").as_u64().unwrap()
    }

    fn words(&self, name: &str) -> Vec<[u8; 4]> {
        let file = SafeTensors::deserialize(&self.bytes).unwrap();
        let tensor = file.tensor(name).unwrap();
        tensor.data().chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]).collect()
    }

    pub(crate) fn ids(&self, name: &str) -> Vec<u32> {
        self.words(name).into_iter().map(|word| u32::try_from(i32::from_le_bytes(word)).unwrap()).collect()
    }

    pub(crate) fn floats(&self, name: &str) -> Vec<f32> {
        self.words(name).into_iter().map(f32::from_le_bytes).collect()
    }

    pub(crate) fn sampled(&self, name: &str) -> Sampled {
        let fact = self.fact(name);
        let size = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
        Sampled {
            rows: size(&fact["shape"][0]),
            columns: size(&fact["shape"][1]),
            stride: size(&fact["stride"]),
            absmax: fact["absmax"].as_f64().unwrap(),
            values: self.floats(name),
        }
    }

    /// `prompt.N` for every length, then `mixed`.
    pub(crate) fn runs(&self) -> Vec<String> {
        let lengths = self.sizes("lengths").into_iter().map(|length| format!("prompt.{length}"));
        lengths.chain(["mixed".to_owned()]).collect()
    }
}

pub(crate) fn config(case: &str) -> Config {
    Config::open(data(&format!("{case}.json"))).unwrap()
}

/// A folder of its own, whoever else asks for one of this name meanwhile.
pub(crate) fn folder(name: &str) -> PathBuf {
    static FOLDERS: AtomicUsize = AtomicUsize::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}", std::process::id()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

/// A checkpoint folder that vanishes with its owner.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of a failed test may stay.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes random weights under the names and shapes given.
pub(crate) fn write_checkpoint(
    name: &str,
    tensors: &[ModelTensor],
    seed: u64,
    dtype: Dtype,
    shards: usize,
) -> Folder {
    let folder = folder(name);
    let specs = tensors.iter().map(|tensor| TensorSpec::new(&tensor.name, dtype, &tensor.shape));
    let sharding = Sharding { max_tensors: tensors.len().div_ceil(shards), ..Sharding::default() };
    let mut writer = CheckpointWriter::create(&folder, specs, &Default::default(), sharding).unwrap();
    for ModelTensor { name, shape, .. } in tensors {
        writer.append(name, &synthetic::weight(name, shape, seed)).unwrap();
    }
    writer.finish().unwrap();
    Folder(folder)
}

/// The checkpoint that a golden file was made from.
pub(crate) fn golden_checkpoint(test: &str, case: &str, golden: &Golden) -> Folder {
    let dtype = match golden.fact("dtype").as_str().unwrap() {
        "float32" => Dtype::F32,
        "float16" => Dtype::F16,
        "bfloat16" => Dtype::BF16,
        other => panic!("{other}"),
    };
    let mut tensors = config(case).tensors();
    if golden.fact("mtp").as_bool().unwrap() {
        let hidden = config(case).hidden_size;
        tensors.push(extra("mtp.fc.weight", &[hidden, 2 * hidden]));
        tensors.push(extra("mtp.norm.weight", &[hidden]));
    }
    let shards = golden.fact("shards").as_u64().unwrap() as usize;
    write_checkpoint(&format!("{test}-{case}"), &tensors, golden.seed(), dtype, shards)
}

/// A tensor that no model asks for.
pub(crate) fn extra(name: &str, shape: &[usize]) -> ModelTensor {
    let kind = qwen3_hybrid::TensorKind::Float32;
    ModelTensor { name: name.to_owned(), shape: shape.to_vec(), kind }
}

/// A golden config's backbone on the CPU.
pub(crate) fn backbone(test: &str, case: &str, golden: &Golden, options: Options) -> Backbone {
    backbone_on(&cpu(), test, case, golden, options)
}

/// A golden config's backbone.
pub(crate) fn backbone_on<B: ScanBackend>(
    device: &B,
    test: &str,
    case: &str,
    golden: &Golden,
    options: Options,
) -> Backbone<B> {
    let folder = golden_checkpoint(test, case, golden);
    Backbone::load(device, &Checkpoint::open(&folder.0).unwrap(), &config(case), options).unwrap()
}

pub(crate) fn cpu() -> Cpu {
    Cpu::with_threads(2).unwrap()
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda() -> fermi_blas::Cuda {
    fermi_blas::Cuda::new(0).unwrap()
}

/// The largest |a − b|, relative to the largest |b|.
pub(crate) fn difference(a: &[f32], b: &[f32]) -> f64 {
    let b: Vec<f64> = b.iter().map(|b| f64::from(*b)).collect();
    fermi_blas::testing::largest_error(a, &b)
}

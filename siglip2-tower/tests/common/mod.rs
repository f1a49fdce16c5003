//! Golden files, the random checkpoints that they were made of, and the one tolerance.
#![allow(dead_code, reason = "every test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fermi_blas::synthetic::{self, Distribution};
use fermi_blas::{Checkpoint, Cpu, Recorder, Stage};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::Value;
use siglip2_tower::{Config, DownsampleMode, Grid, Options, Slice, Tower, WindowBackend};

/// Largest error of any stage, relative to the largest magnitude of the reference's whole tensor. The reference's own
/// float32 is up to 2e-6 from float64 (`noise` in the golden files), and ours, which sums in another order, likewise.
pub(crate) const STAGE: f64 = 1e-5;

/// Largest error between two runs of the same picture in other company: the same operations on other shapes sum in another
/// order, so each run is as far from the exact value as the golden files' `noise` (up to 1.1e-6 in `embeddings`), and two runs
/// are twice as far from one another.
pub(crate) const COMPANY: f64 = 2e-6;

pub(crate) const CASES: [&str; 7] = ["base", "grouped", "conv3", "four_x", "twice", "twice_4x", "real_heads"];

pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) shape: [usize; 2],
    pub(crate) stride: usize,
    pub(crate) absmax: f64,
    pub(crate) noise: f64,
    pub(crate) values: Vec<f32>,
}

pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) json: Vec<u8>,
    pub(crate) config: Config,
    pub(crate) seed: u64,
    pub(crate) dtype: String,
    pub(crate) grids: Vec<Grid>,
    pub(crate) stages: Vec<Sample>,
}

pub(crate) fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

impl Golden {
    pub(crate) fn read(name: &str) -> Self {
        let bytes = std::fs::read(data(&format!("{name}.safetensors"))).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let metadata: BTreeMap<String, Value> = header
            .metadata()
            .as_ref()
            .unwrap()
            .iter()
            .map(|(key, value)| (key.clone(), serde_json::from_str(value).unwrap()))
            .collect();
        let sizes = tensors.tensor("target_sizes").unwrap();
        let sizes: Vec<usize> =
            sizes.data().as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes) as usize).collect();
        let stage = |name: &Value| {
            let name = name.as_str().unwrap().to_owned();
            let facts = &metadata[&name];
            Sample {
                shape: [0, 1].map(|axis| facts["shape"][axis].as_u64().unwrap() as usize),
                stride: facts["stride"].as_u64().unwrap() as usize,
                absmax: facts["absmax"].as_f64().unwrap(),
                noise: facts["noise"].as_f64().unwrap(),
                values: floats(tensors.tensor(&name).unwrap().data()),
                name,
            }
        };
        let json = std::fs::read(data(&format!("{name}.json"))).unwrap();
        Self {
            name: name.to_owned(),
            config: Config::from_json(&json).unwrap(),
            json,
            seed: metadata["seed"].as_u64().unwrap(),
            dtype: metadata["dtype"].as_str().unwrap().to_owned(),
            grids: sizes.as_chunks::<2>().0.iter().map(|size| Grid::from(*size)).collect(),
            stages: metadata["stages"].as_array().unwrap().iter().map(stage).collect(),
        }
    }
}

/// The case's checkpoint, rounded to its type; the file lies in the build folder and is made anew by every caller.
pub(crate) fn checkpoint(golden: &Golden, user: &str) -> Checkpoint {
    let tensors = golden.config.tensors().into_iter().map(|(name, shape)| {
        let values = synthetic::weight(&name, &shape, golden.seed);
        let (dtype, bytes): (_, Vec<u8>) = match golden.dtype.as_str() {
            "float32" => (Dtype::F32, values.iter().flat_map(|x| x.to_le_bytes()).collect()),
            "bfloat16" => {
                (Dtype::BF16, values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect())
            }
            "float16" => (Dtype::F16, values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect()),
            dtype => panic!("unknown type {dtype}"),
        };
        (name, dtype, shape, bytes)
    });
    let tensors: Vec<_> = tensors.collect();
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{user}.safetensors", golden.name));
    safetensors::serialize_to_file(views, None, &path).unwrap();
    Checkpoint::open(path).unwrap()
}

/// The pixel values of the case's slice `index`.
pub(crate) fn pixels(golden: &Golden, index: usize) -> Vec<f32> {
    let count = golden.grids[index].patches() * golden.config.vision_config.patch_values();
    let uniform = Distribution { center: 0.0, scale: 1.0 };
    synthetic::values(&format!("pixel_values.{index}"), count, golden.seed, uniform)
}

pub(crate) fn all_pixels(golden: &Golden) -> Vec<Vec<f32>> {
    (0..golden.grids.len()).map(|index| pixels(golden, index)).collect()
}

pub(crate) fn slices<'a>(golden: &Golden, pixels: &'a [Vec<f32>]) -> Vec<Slice<'a>> {
    let slice = |(pixel_values, grid): (&'a Vec<f32>, &Grid)| Slice { pixel_values, grid: *grid };
    pixels.iter().zip(&golden.grids).map(slice).collect()
}

pub(crate) fn device() -> Cpu {
    Cpu::with_threads(2).unwrap()
}

#[cfg(feature = "cuda")]
pub(crate) fn cuda() -> fermi_blas::Cuda {
    fermi_blas::Cuda::new(0).unwrap()
}

pub(crate) fn options(max_patches: usize) -> Options {
    Options { max_patches, ..Options::default() }
}

pub(crate) fn in_mode(mode: DownsampleMode, options: Options) -> Options {
    Options { downsample_mode: Some(mode), ..options }
}

pub(crate) fn encode<B: WindowBackend>(tower: &mut Tower<B>, device: &B, slices: &[Slice<'_>]) -> Vec<f32> {
    tower.encode(slices).unwrap().to_vec(device).unwrap()
}

pub(crate) fn trace<B: WindowBackend>(tower: &mut Tower<B>, device: &B, slices: &[Slice<'_>]) -> Vec<Stage> {
    let mut output = fermi_blas::Matrix::zeros(device, tower.tokens(slices).unwrap(), tower.width()).unwrap();
    let mut recorder = Recorder::new(device);
    tower.forward(slices, &mut recorder, output.view_mut()).unwrap();
    recorder.stages
}

/// The largest difference, relative to `largest`; NaN counts as infinite.
pub(crate) fn error(actual: impl IntoIterator<Item = f32>, expected: &[f32], largest: f64) -> f64 {
    let mut worst = 0.0f64;
    let mut count = 0;
    for (actual, expected) in actual.into_iter().zip(expected) {
        let difference = (f64::from(actual) - f64::from(*expected)).abs() / largest;
        worst = if difference.is_nan() { f64::INFINITY } else { worst.max(difference) };
        count += 1;
    }
    assert_eq!(count, expected.len(), "values are missing");
    worst
}

pub(crate) fn largest(values: &[f32]) -> f64 {
    values.iter().fold(0.0f64, |largest, x| largest.max(f64::from(x.abs())))
}

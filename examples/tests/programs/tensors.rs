//! Programs that write tensors: scan, trace, embed_image, generate's logits.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use examples::TensorFile;
use fermi_blas::Checkpoint;
use fermi_blas::synthetic::{Distribution, values};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::program::{Program, folder, repository, tiny};

/// What the model needs of a scan, relative to the largest magnitude: the same as in the tests of gdn-scan.
const SCAN_TOLERANCE: f64 = 1e-5;

/// Name, type and shape of a file's tensors.
fn shapes(path: &Path) -> BTreeMap<String, (Dtype, Vec<usize>)> {
    let bytes = fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.iter().map(|(name, view)| (name.to_owned(), (view.dtype(), view.shape().to_vec()))).collect()
}

fn load(file: &Checkpoint, name: &str) -> Vec<f32> {
    let shape = file.info(name).unwrap().shape.clone();
    file.load_vec(name, &shape).unwrap()
}

/// One case of the golden file: its inputs as `scan` reads them.
fn write_case(golden: &Checkpoint, name: &str, case: &Value, seed: u64, path: &Path) {
    let [t, hk, hv, dk, dv] = ["T", "Hk", "Hv", "Dk", "Dv"].map(|key| case[key].as_u64().unwrap() as usize);
    let mut file = TensorFile::default();
    let mut generated = |part: &str, shape: &[usize]| {
        let name = format!("{name}.{part}");
        let uniform = Distribution { center: 0.0, scale: 1.0 };
        let values = values(&name, shape.iter().product(), seed, uniform);
        file.add(&name, shape, values);
    };
    generated("q", &[t, hk, dk]);
    generated("k", &[t, hk, dk]);
    generated("v", &[t, hv, dv]);
    if case["state"] == true {
        generated("s0", &[hv, dk, dv]);
    }
    for part in ["g", "beta"] {
        let name = format!("{name}.{part}");
        file.add(&name, &[t, hv], load(golden, &name));
    }
    file.save(path).unwrap();
}

fn check_sample(golden: &Checkpoint, name: &str, actual: &[f32], what: &str) {
    let facts: Value = serde_json::from_str(&golden.metadata()[name]).unwrap();
    let stride = facts["stride"].as_u64().unwrap() as usize;
    let limit = SCAN_TOLERANCE * facts["absmax"].as_f64().unwrap();
    let expected = load(golden, name);
    let actual: Vec<f32> = actual.iter().copied().step_by(stride).collect();
    assert_eq!(actual.len(), expected.len(), "{what}: {name}");
    for (actual, expected) in actual.iter().zip(&expected) {
        let error = (f64::from(*actual) - f64::from(*expected)).abs();
        assert!(error <= limit, "{what}: {name} is off by {error:.1e}");
    }
}

#[test]
fn scan_gives_the_golden_values_in_every_mode() {
    let golden = Checkpoint::open(repository("gdn-scan/tests/data/scan.safetensors")).unwrap();
    let fact = |key: &str| serde_json::from_str::<Value>(&golden.metadata()[key]).unwrap();
    let (seed, cases) = (fact("seed").as_u64().unwrap(), fact("cases"));
    let folder = folder("scan");
    for name in ["one", "short", "grouped", "one_10000_among_small"] {
        let case = &cases[name];
        let (input, out) = (folder.join(format!("{name}.safetensors")), folder.join("out.safetensors"));
        write_case(&golden, name, case, seed, &input);
        for mode in ["chunked", "chunked --chunk 16", "sequential", "step"] {
            let program = Program::new("scan").option("--input", &input).option("--case", name);
            program.option("--out", &out).args(&format!("--mode {mode}")).succeed();
            let file = Checkpoint::open(&out).unwrap();
            check_sample(&golden, &format!("{name}.out"), &load(&file, "out"), mode);
            check_sample(&golden, &format!("{name}.s1"), &load(&file, "s1"), mode);
        }
    }
}

#[test]
fn trace_writes_every_stage_by_the_reference_s_names() {
    let out = folder("trace").join("trace.safetensors");
    let image = tiny("sample_sliced.png");
    Program::new("trace").option("--image", &image).option("--out", &out).succeed();
    let mut actual = shapes(&out);
    // The overview and 2 x 2 slices of 28 x 36 patches; the window merger, behind layer 2, halves both sides.
    let (patches, width) = (5 * 28 * 36, 144);
    let mut expected = BTreeMap::new();
    let mut stage =
        |name: &str, shape: &[usize]| expected.insert(name.to_owned(), (Dtype::F32, shape.to_vec()));
    stage("pixel_values", &[3, 14, 14 * patches]);
    stage("embeddings", &[patches, width]);
    for layer in 0..8 {
        let rows = if layer <= 2 { patches } else { patches / 4 };
        stage(&format!("encoder.layers.{layer}"), &[rows, width]);
    }
    stage("vit_merger", &[patches / 4, width]);
    stage("post_layernorm", &[patches / 4, width]);
    stage("merger", &[patches / 16, 128]);
    assert_eq!(actual.remove("target_sizes"), Some((Dtype::I32, vec![5, 2])));
    assert_eq!(actual, expected);

    Program::new("trace").option("--image", &image).option("--out", &out).args("--downsample 4x").succeed();
    let fine = shapes(&out);
    assert!(!fine.contains_key("vit_merger"));
    assert_eq!(fine["merger"].1, [5 * 28 * 36 / 4, 128]);
}

#[test]
fn embed_image_gives_the_last_stage_of_trace() {
    let folder = folder("embed");
    let (trace, embedded) = (folder.join("trace.safetensors"), folder.join("embedded.safetensors"));
    let image = tiny("sample_sliced.png");
    Program::new("trace").option("--image", &image).option("--out", &trace).succeed();
    let embed = || Program::new("embed_image").arg(&image).option("--out", &embedded);
    let summary = embed().json();
    assert_eq!(summary["shape"], serde_json::json!([315, 128]));
    assert_eq!(summary["grid"], serde_json::json!([2, 2]));
    let (traced, alone) = (Checkpoint::open(&trace).unwrap(), Checkpoint::open(&embedded).unwrap());
    assert_eq!(load(&traced, "merger"), load(&alone, "embeddings"));
    assert!(embed().succeed().contains("800 x 600, overview and 2 x 2 slices"));
}

#[test]
fn generate_writes_the_logits_that_chose_each_id() {
    let out = folder("logits").join("logits.safetensors");
    let program = Program::new("generate").args("--ids 5,6,7 --ignore-eos --max-new-tokens 6");
    let ids: Vec<usize> =
        serde_json::from_value(program.option("--step-logits", &out).json()["ids"].clone()).unwrap();
    let file = Checkpoint::open(&out).unwrap();
    assert_eq!(file.info("step_logits").unwrap().shape, [6, 768]);
    let logits = load(&file, "step_logits");
    for (id, logits) in ids.iter().zip(logits.chunks(768)) {
        assert!(logits.iter().all(|logit| *logit <= logits[*id]));
    }
}

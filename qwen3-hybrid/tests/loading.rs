//! Case D9, both layouts, 8-bit checkpoints and the memory plan.

#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod common;

use common::{
    CASES, Folder, Golden, LOGITS, config, difference, extra, folder, golden_checkpoint, write_checkpoint,
};
use fermi_blas::{
    Backend, Checkpoint, CheckpointWriter, Cpu, Dtype, Error as BlasError, Precision, Sharding, TensorSpec,
    synthetic,
};
use qwen3_hybrid::{Backbone, Config, Error, Input, ModelTensor, Options, TensorKind};

fn options(precision: Precision) -> Options {
    Options::default().precision(precision).context_length(96).prefill_chunk(32).attention_rows(16)
}

fn load(folder: &Folder, config: &Config, precision: Precision) -> qwen3_hybrid::Result<Backbone> {
    let device = Cpu::with_threads(1).unwrap();
    Backbone::load(&device, &Checkpoint::open(&folder.0).unwrap(), config, options(precision))
}

fn blas_error(result: qwen3_hybrid::Result<Backbone>) -> BlasError {
    match result {
        Err(Error::Blas(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Logits after a prompt of 40 ids and after 3 more.
fn logits(model: &mut Backbone) -> Vec<f32> {
    let vocab = model.config().vocab_size;
    let ids = synthetic::token_ids("ids", 43, 1, vocab as u32);
    let mut sequence = model.sequence().unwrap();
    let mut rows = vec![0.0; 4 * vocab];
    model.prefill(&mut sequence, Input::Ids(&ids[..40])).unwrap();
    for (index, row) in rows.chunks_mut(vocab).enumerate() {
        model.read_logits(row).unwrap();
        if let Some(id) = ids.get(40 + index) {
            model.step(&mut sequence, *id).unwrap();
        }
    }
    rows
}

#[test]
fn d9_an_untied_head_that_is_missing_is_named() {
    let config = config("conv3");
    let mut tensors = config.tensors();
    assert_eq!(tensors.pop().unwrap().name, "lm_head.weight");
    let folder = write_checkpoint("untied", &tensors, 1, Dtype::F32, 1);
    let error = blas_error(load(&folder, &config, Precision::F32));
    assert!(
        matches!(&error, BlasError::MissingTensor { tensor, .. } if tensor == "lm_head.weight"),
        "{error}"
    );
}

#[test]
fn d9_a_tied_model_needs_no_head() {
    let config = config("base");
    let folder = write_checkpoint("tied", &config.tensors(), 1, Dtype::F32, 1);
    assert!(load(&folder, &config, Precision::F32).is_ok());
}

#[test]
fn d9_an_absent_shard_is_named_and_a_stray_one_is_ignored() {
    let config = config("base");
    let folder = write_checkpoint("shards", &config.tensors(), 1, Dtype::F32, 3);
    let shard = |index| folder.0.join(format!("model-{index:05}-of-00003.safetensors"));
    std::fs::write(folder.0.join("model-00009-of-00009.safetensors"), b"not a checkpoint").unwrap();
    assert!(load(&folder, &config, Precision::F32).is_ok());
    std::fs::remove_file(shard(2)).unwrap();
    let error = Checkpoint::open(&folder.0).unwrap_err().to_string();
    assert!(error.contains("model-00002-of-00003.safetensors"), "{error}");
}

#[test]
fn d9_what_nobody_asks_for_is_listed_once() {
    let config = config("base");
    let mut tensors = config.tensors();
    tensors.push(extra("mtp.fc.weight", &[96, 192]));
    tensors.push(extra("model.language_model.layers.0.strange", &[3]));
    let folder = write_checkpoint("extras", &tensors, 1, Dtype::F32, 2);
    let checkpoint = Checkpoint::open(&folder.0).unwrap();
    let device = Cpu::with_threads(1).unwrap();
    Backbone::load(&device, &checkpoint, &config, options(Precision::Q8)).unwrap();
    assert_eq!(checkpoint.unused(), ["model.language_model.layers.0.strange", "mtp.fc.weight"]);
}

#[test]
fn d9_a_wrong_shape_gives_both_shapes() {
    let config = config("base");
    let mut tensors = config.tensors();
    let wrong = tensors.iter_mut().find(|tensor| tensor.name.ends_with("layers.3.self_attn.q_proj.weight"));
    wrong.unwrap().shape = vec![128, 96];
    let folder = write_checkpoint("shape", &tensors, 1, Dtype::F32, 1);
    let BlasError::TensorShape { tensor, expected, actual, .. } =
        blas_error(load(&folder, &config, Precision::F32))
    else {
        panic!("another error");
    };
    assert_eq!(tensor, "model.language_model.layers.3.self_attn.q_proj.weight");
    assert_eq!((expected, actual), (vec![256, 96], vec![128, 96]));
}

#[test]
fn a_checkpoint_of_the_other_layout_is_read_too() {
    let config = config("base");
    let mut tensors = config.tensors();
    let golden = load(&write_checkpoint("layout", &tensors, 1, Dtype::F32, 1), &config, Precision::F32);
    for tensor in &mut tensors {
        tensor.name = tensor.name.replace("model.language_model.", "model.");
    }
    let other = load(&write_checkpoint("layout", &tensors, 1, Dtype::F32, 1), &config, Precision::F32);
    // The generator draws by name, so the two models differ: that both load and run is the point.
    assert_ne!(logits(&mut golden.unwrap()), logits(&mut other.unwrap()));
}

/// A checkpoint of a golden config with its projections in 8 bits.
fn write_q8(case: &str, golden: &Golden) -> Folder {
    let source = golden_checkpoint("source", case, golden);
    let source = Checkpoint::open(&source.0).unwrap();
    let folder = folder(&format!("q8-{case}"));
    let tensors = config(case).tensors();
    let specs = tensors.iter().flat_map(|ModelTensor { name, shape, kind }| match kind {
        TensorKind::Projection => TensorSpec::q8(name, [shape[0], shape[1]]).to_vec(),
        TensorKind::Float32 => vec![TensorSpec::new(name, Dtype::F32, shape)],
    });
    let mut writer =
        CheckpointWriter::create(&folder, specs, &Default::default(), Sharding::default()).unwrap();
    for ModelTensor { name, shape, .. } in &tensors {
        writer.append(name, &source.load_vec(name, shape).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    Folder(folder)
}

#[test]
fn eight_bits_equal_float32_on_the_dequantized_weights() {
    for case in CASES {
        let golden = Golden::open(case);
        let (config, q8) = (config(case), write_q8(case, &golden));
        let stored = logits(&mut load(&q8, &config, Precision::Q8).unwrap());
        let expanded = logits(&mut load(&q8, &config, Precision::F32).unwrap());
        let source = golden_checkpoint("rounded", case, &golden);
        let rounded = logits(&mut load(&source, &config, Precision::Q8).unwrap());
        assert_eq!(stored, rounded, "{case}: rounded while loading or before");
        let error = difference(&stored, &expanded);
        println!("{case}: 8 bits {error:.1e} from their float32 values");
        assert!(error <= LOGITS, "{case}: {error:.1e}");
        let float = logits(&mut load(&source, &config, Precision::F32).unwrap());
        let rounding = difference(&stored, &float);
        // Of an 8-bit rounding a random model keeps a few parts in a thousand; none at all would mean no rounding.
        assert!((1e-4..0.2).contains(&rounding), "{case}: {rounding:.1e}");
    }
}

#[test]
fn bfloat16_is_exact_for_a_bfloat16_checkpoint() {
    let golden = Golden::open("grouped");
    let folder = golden_checkpoint("bfloat16", "grouped", &golden);
    let config = config("grouped");
    let float = logits(&mut load(&folder, &config, Precision::F32).unwrap());
    let bf16 = logits(&mut load(&folder, &config, Precision::Bf16).unwrap());
    assert!(difference(&bf16, &float) <= LOGITS);
}

#[test]
fn the_plan_agrees_with_what_is_held() {
    for case in CASES {
        let golden = Golden::open(case);
        let (config, folder) = (config(case), golden_checkpoint("plan", case, &golden));
        for precision in [Precision::F32, Precision::Bf16, Precision::Q8] {
            let options = options(precision).logits_rows(3).context_length(500);
            let device = Cpu::with_threads(1).unwrap();
            let plan = Backbone::memory_plan(&device, &config, &options).unwrap();
            let checkpoint = Checkpoint::open(&folder.0).unwrap();
            let model = Backbone::load(&device, &checkpoint, &config, options).unwrap();
            let loaded = device.memory().in_use;
            assert_eq!(plan.weights + plan.scratch, loaded, "{case} {precision:?}");
            let _sequence = model.sequence().unwrap();
            assert_eq!(plan.total(), device.memory().in_use, "{case} {precision:?}");
            let _shared = model.share().unwrap();
            assert_eq!(plan.total() + plan.scratch, device.memory().in_use, "weights are not copied");
        }
    }
}

#[test]
fn the_papers_budget_holds() {
    let config = config("full");
    let device = Cpu::with_threads(1).unwrap();
    let plan = Backbone::memory_plan(&device, &config, &Options::default()).unwrap();
    assert!(plan.total() < 1_600_000_000, "{plan:?}");
    println!("{plan:?} = {:.3} GB", plan.total() as f64 / 1e9);
}

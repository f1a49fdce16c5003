//! Field cases of the backbone (D7, D8, X6, X7, X11), and what a wrong call gives.

#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod common;

use std::fmt;

use common::{Folder, Golden, backbone, config, folder};
use fermi_blas::{
    Backend, Checkpoint, CheckpointWriter, Cpu, Dtype, Matrix, Observer, Precision, Recorder, RotaryTable,
    RowOps, Sharding, TensorSpec, View, synthetic,
};
use qwen3_hybrid::{Backbone, Error, Input, ModelTensor, Options, Positions, Sampler, Sampling};

fn options() -> Options {
    Options::default().precision(Precision::F32).context_length(256).prefill_chunk(64)
}

fn base(test: &str) -> Backbone {
    backbone(test, "base", &Golden::open("base"), options())
}

#[test]
fn x6_a_prompt_beyond_the_context_gives_both_numbers() {
    let mut model = base("x6");
    let mut sequence = model.sequence().unwrap();
    let error = model.prefill(&mut sequence, Input::Ids(&[1; 300])).unwrap_err();
    assert!(matches!(error, Error::ContextOverflow { needed: 300, context_length: 256 }), "{error}");
    assert_eq!(sequence.len(), 0, "nothing was cut or taken in");

    model.prefill(&mut sequence, Input::Ids(&[1; 250])).unwrap();
    assert_eq!(sequence.room(), 6);
    for _ in 0..6 {
        let id = model.greedy().unwrap();
        model.step(&mut sequence, id).unwrap();
    }
    let error = model.step(&mut sequence, 1).unwrap_err();
    assert!(matches!(error, Error::ContextOverflow { needed: 257, context_length: 256 }), "{error}");
    assert!(model.greedy().is_ok(), "what was there stays");
}

#[test]
fn x7_scores_of_2_to_the_31_elements_are_counted() {
    let mut config = config("base");
    (config.num_attention_heads, config.num_key_value_heads) = (8, 2);
    let device = Cpu::with_threads(1).unwrap();
    let options = Options::default().context_length(16_384).prefill_chunk(16_384).attention_rows(16_384);
    let plan = |options: &Options| Backbone::memory_plan(&device, &config, options).unwrap().scratch;
    let one_row = plan(&options.clone().attention_rows(1));
    assert_eq!(plan(&options) - one_row, 4 * 8 * 16_384 * 16_383);
}

#[test]
#[ignore = "writes 2 GB"]
fn x7_the_last_of_2_to_the_31_scores_is_reached() {
    // Offsets count elements, so bytes show the same arithmetic in a quarter of the memory.
    let device = Cpu::with_threads(1).unwrap();
    let (heads, keys) = (8, 16_384);
    let mut scores: Matrix<Cpu, i8> = Matrix::zeros(&device, 1, (1 << 31) + keys).unwrap();
    assert!(scores.view().reshape(keys + 1, heads * keys).is_err(), "one row too many");
    let block = scores.view_mut().column_range(keys..(1 << 31) + keys).unwrap();
    let block = block.reshape(keys, heads * keys).unwrap();
    let last = block.heads(heads).unwrap().entry(heads - 1).unwrap().row_range(keys - 1..keys).unwrap();
    device.write(&vec![3; keys], last).unwrap();
    let tail = scores.view().column_range((1 << 31)..(1 << 31) + keys).unwrap();
    assert!(tail.to_vec(&device).unwrap().iter().all(|x| *x == 3));
}

#[test]
fn x11_a_residual_of_70000_stays_finite() {
    let mut model = base("x11");
    let device = model.device().clone();
    let width = model.config().hidden_size;
    let rows: Vec<f32> = (0..3 * width).map(|i| if i % 2 == 0 { 70_000.0 } else { -65_000.0 }).collect();
    let rows = Matrix::from_slice(&device, 3, width, &rows).unwrap();
    let mut recorder = Recorder::new(&device);
    let mut sequence = model.sequence().unwrap();
    model.forward(&mut sequence, Input::Embeddings(rows.view()), Positions::All, &mut recorder).unwrap();
    for stage in recorder.stages {
        assert!(stage.values.iter().all(|x| x.is_finite()), "{}", stage.name);
        if stage.name.starts_with("layers") {
            assert!(stage.values.iter().any(|x| x.abs() > 60_000.0), "the residual is carried on");
        }
    }
}

#[test]
fn d8_frequencies_of_the_public_config() {
    let config = config("full");
    let device = Cpu::with_threads(1).unwrap();
    let table = RotaryTable::new(&device, 2, config.rotary_dim(), config.rope_theta).unwrap();
    // The sine of position 1 is the sine of the frequency itself.
    let sines = table.sines.row_range(1..2).unwrap().to_vec(&device).unwrap();
    assert_eq!(sines.len(), 32);
    assert!((sines[0].asin() - 1.0).abs() < 1e-6);
    assert!((sines[31] / 1.65482e-7 - 1.0).abs() < 1e-5);

    let before = synthetic::token_ids("head", 256, 1, 100).into_iter().map(|x| x as f32).collect::<Vec<_>>();
    let mut head = Matrix::from_slice(&device, 1, 256, &before).unwrap();
    let positions = Matrix::from_slice(&device, 1, 1, &[1]).unwrap();
    device.rotary_in_place(head.view_mut().heads(1).unwrap(), positions.view(), &table).unwrap();
    let after = head.to_vec(&device).unwrap();
    assert_eq!(before[64..], after[64..]);
    assert_ne!(before[..64], after[..64]);
}

/// A bfloat16 checkpoint of the base config whose final norm has a weight of 0.001 everywhere.
fn small_norm() -> Folder {
    let folder = folder("d7");
    let tensors = config("base").tensors();
    let specs = tensors.iter().map(|tensor| TensorSpec::new(&tensor.name, Dtype::BF16, &tensor.shape));
    let mut writer =
        CheckpointWriter::create(&folder, specs, &Default::default(), Sharding::default()).unwrap();
    for ModelTensor { name, shape, .. } in &tensors {
        let values = synthetic::weight(name, shape, 1);
        let final_norm = name == "model.language_model.norm.weight";
        writer.append(name, &if final_norm { vec![0.001; values.len()] } else { values }).unwrap();
    }
    writer.finish().unwrap();
    Folder(folder)
}

#[test]
fn d7_one_is_added_to_a_norm_weight_in_float32() {
    let device = Cpu::with_threads(1).unwrap();
    let checkpoint = small_norm();
    let checkpoint = Checkpoint::open(&checkpoint.0).unwrap();
    let mut model = Backbone::load(&device, &checkpoint, &config("base"), options()).unwrap();
    let mut recorder = Recorder::new(&device);
    let mut sequence = model.sequence().unwrap();
    model.forward(&mut sequence, Input::Ids(&[3]), Positions::Last, &mut recorder).unwrap();
    let stage = |name: &str| &recorder.stages.iter().find(|stage| stage.name == name).unwrap().values;
    let (hidden, normed) = (stage("layers.5"), stage("norm"));
    let mean = hidden.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / hidden.len() as f64;
    for (x, y) in hidden.iter().zip(normed) {
        // 0.001 in bfloat16 is 0.00099945: in bfloat16 the sum would have been 1.
        let expected = f64::from(*x) / (mean + 1e-6).sqrt() * 1.000_999_45;
        assert!((f64::from(*y) - expected).abs() <= 1e-6 * expected.abs() + 1e-9, "{y} {expected}");
    }
}

#[test]
fn d7_norms_of_3_and_4() {
    let device = Cpu::with_threads(1).unwrap();
    let row = |values: &[f32]| Matrix::from_slice(&device, 1, 2, values).unwrap();
    let (mut x, zero, mut y) = (row(&[3.0, 4.0]), row(&[0.0, 0.0]), row(&[0.0, 0.0]));
    device.rms_norm(x.view(), zero.view(), 1e-6, y.view_mut()).unwrap();
    for (y, expected) in y.to_vec(&device).unwrap().iter().zip([0.848_528, 1.131_371]) {
        assert!((y - expected).abs() < 1e-6, "{y}");
    }
    let z = row(&[1.0, 2.0]);
    device.gated_rms_norm_in_place(x.view_mut(), z.view(), zero.view(), 1e-6).unwrap();
    assert_eq!(x.to_vec(&device).unwrap(), [0.0, 0.0]);
}

#[test]
fn wrong_inputs_are_typed_errors_and_change_nothing() {
    let mut model = base("wrong");
    let device = model.device().clone();
    let width = model.config().hidden_size;
    let mut sequence = model.sequence().unwrap();
    let rows: Matrix<Cpu> = Matrix::zeros(&device, 2, width).unwrap();
    let narrow: Matrix<Cpu> = Matrix::zeros(&device, 2, width - 1).unwrap();
    fn mixed<'a>(positions: &'a [usize], embeddings: View<'a, Cpu>) -> Input<'a, Cpu> {
        Input::Mixed { ids: &[1, 2, 3], positions, embeddings }
    }
    let mut fails = |input: Input<'_, Cpu>| {
        let error = model.prefill(&mut sequence, input).unwrap_err();
        assert_eq!(sequence.len(), 0);
        error
    };
    assert!(matches!(fails(Input::Ids(&[])), Error::EmptyInput));
    let error = fails(Input::Ids(&[1, 2, 250]));
    assert!(matches!(error, Error::Vocabulary { id: 250, position: 2, vocab_size: 250 }), "{error}");
    let error = fails(Input::Embeddings(narrow.view()));
    assert!(matches!(error, Error::Embeddings { axis: "width", expected: 96, actual: 95 }), "{error}");
    let error = fails(mixed(&[0], rows.view()));
    assert!(matches!(error, Error::Embeddings { axis: "rows", expected: 1, actual: 2 }), "{error}");
    for positions in [[1, 1], [2, 0], [1, 3]] {
        let error = fails(mixed(&positions, rows.view()));
        assert!(matches!(error, Error::EmbeddingPosition { index: 1, tokens: 3, .. }), "{error}");
    }
    model.prefill(&mut sequence, mixed(&[0, 2], rows.view())).unwrap();
}

#[test]
fn options_of_zero_are_named() {
    let device = Cpu::with_threads(1).unwrap();
    for (option, options) in [
        ("context_length", options().context_length(0)),
        ("prefill_chunk", options().prefill_chunk(0)),
        ("attention_rows", options().attention_rows(0)),
        ("logits_rows", options().logits_rows(0)),
        ("scan_chunk", options().scan_chunk(0)),
    ] {
        let error = Backbone::memory_plan(&device, &config("base"), &options).unwrap_err();
        assert!(
            matches!(error, Error::LoadOption { option: named, value: 0, .. } if named == option),
            "{error}"
        );
    }
}

/// Fails at one stage.
struct Failing(&'static str);

impl Observer<Cpu> for Failing {
    fn stage(&mut self, name: fmt::Arguments<'_>, _: View<'_, Cpu>) -> fermi_blas::Result<()> {
        if name.to_string() == self.0 {
            return Err(fermi_blas::Error::SizeOverflow { operation: "test" });
        }
        Ok(())
    }
}

#[test]
fn a_sequence_of_a_failed_pass_is_not_used_again() {
    let mut model = base("failed");
    let device = model.device().clone();
    let mut sequence = model.sequence().unwrap();
    let failed = model.forward(&mut sequence, Input::Ids(&[1, 2]), Positions::Last, &mut Failing("layers.2"));
    assert!(matches!(failed, Err(Error::Blas(_))));
    assert!(matches!(model.step(&mut sequence, 1), Err(Error::BrokenSequence)));
    assert!(matches!(sequence.try_clone(&device), Err(Error::BrokenSequence)));
    sequence.clear(&device).unwrap();
    model.step(&mut sequence, 1).unwrap();
    // At the head too: of a longer input, later chunks are missing.
    let failed = model.forward(&mut sequence, Input::Ids(&[1, 2]), Positions::All, &mut Failing("norm"));
    assert!(failed.is_err());
    assert!(matches!(model.step(&mut sequence, 1), Err(Error::BrokenSequence)));
}

#[test]
fn a_sequence_of_another_model_is_refused() {
    let (mut model, other) =
        (base("foreign"), backbone("foreign", "conv3", &Golden::open("conv3"), options()));
    let mut sequence = other.sequence().unwrap();
    assert!(matches!(model.step(&mut sequence, 1), Err(Error::ForeignSequence)));
    let mut own = model.sequence().unwrap();
    assert!(matches!(own.copy_from(&model.device().clone(), &sequence), Err(Error::ForeignSequence)));
}

#[test]
fn a_sampler_chooses_from_the_pass_before() {
    let mut model = base("sampler");
    let vocab = model.config().vocab_size;
    let mut sequence = model.sequence().unwrap();
    model.prefill(&mut sequence, Input::Ids(&[5, 6, 7])).unwrap();
    let mut logits = vec![0.0; vocab];
    model.read_logits(&mut logits).unwrap();
    let mut greedy = Sampler::new(&Sampling::default(), vocab).unwrap();
    assert_eq!(model.choose(&mut greedy, &[]).unwrap(), greedy.choose(&logits, &[]).unwrap());
    let sampling = Sampling { temperature: 1.0, top_k: 40, top_p: 0.9, seed: 5, ..Sampling::default() };
    let [mut a, mut b] = [(); 2].map(|()| Sampler::new(&sampling, vocab).unwrap());
    for _ in 0..8 {
        assert_eq!(model.choose(&mut a, &[]).unwrap(), b.choose(&logits, &[]).unwrap());
    }
    let mut foreign = Sampler::new(&sampling, vocab + 1).unwrap();
    assert!(model.choose(&mut foreign, &[]).is_err());
}

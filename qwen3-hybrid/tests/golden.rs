//! Every stage, the logits and the greedy tokens of every golden config against transformers, in float32, on every device.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper that cannot go on fails its test; errors are shown"
)]

mod common;

use common::{CASES, Golden, LAYER, LOGITS, MARGIN, backbone_on, config};
use fermi_blas::synthetic::{self, Distribution};
use fermi_blas::{Matrix, Precision, Recorder};
use gdn_scan::ScanBackend;
use qwen3_hybrid::{Backbone, Input, Options, Positions};

/// Greedy tokens of every run.
const STEPS: usize = 64;

fn options() -> Options {
    Options::default().precision(Precision::F32).context_length(256).prefill_chunk(256).logits_rows(256)
}

/// What a run of a golden file was fed.
struct Run {
    ids: Vec<u32>,
    replaced: Vec<usize>,
    embeddings: Vec<f32>,
}

impl Run {
    fn new(golden: &Golden, name: &str, hidden: usize) -> Self {
        let ids = golden.ids(&format!("{name}.ids"));
        if name != "mixed" {
            return Self { ids, replaced: Vec::new(), embeddings: Vec::new() };
        }
        let replaced = golden.sizes("replaced");
        let distribution = Distribution { center: 0.0, scale: 2.0 * (3.0 / hidden as f64).sqrt() };
        let count = replaced.len() * hidden;
        let embeddings = synthetic::values("inputs_embeds", count, golden.seed(), distribution);
        Self { ids, replaced, embeddings }
    }
}

/// Runs one prompt and the first of its 64 steps; the largest error of the layers, of the logits and of the steps' logits.
fn check_run<B: ScanBackend>(
    model: &mut Backbone<B>,
    golden: &Golden,
    case: &str,
    name: &str,
    steps: usize,
) -> [f64; 3] {
    let (device, hidden) = (model.device().clone(), model.config().hidden_size);
    let vocab = model.config().vocab_size;
    let run = Run::new(golden, name, hidden);
    let embeddings = Matrix::from_slice(&device, run.replaced.len(), hidden, &run.embeddings).unwrap();
    let input = match name {
        "mixed" => Input::Mixed { ids: &run.ids, positions: &run.replaced, embeddings: embeddings.view() },
        _ => Input::Ids(&run.ids),
    };
    let mut recorder = Recorder::new(&device);
    let mut sequence = model.sequence().unwrap();
    model.forward(&mut sequence, input, Positions::All, &mut recorder).unwrap();

    let names: Vec<&str> = recorder.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(golden.fact("stages"), serde_json::json!(names));
    let (mut layers, mut logits) = (0.0f64, 0.0f64);
    for stage in &recorder.stages {
        let expected = golden.sampled(&format!("{name}.{}", stage.name));
        assert_eq!((stage.rows, stage.columns), (expected.rows, expected.columns));
        let error = expected.error(&stage.values);
        let (tolerance, worst) =
            if stage.name == "logits" { (LOGITS, &mut logits) } else { (LAYER, &mut layers) };
        assert!(error <= tolerance, "{case} {name} {}: {error:.1e}", stage.name);
        *worst = worst.max(error);
    }
    let mut row = vec![0.0; vocab];
    model.read_logits(&mut row).unwrap();
    let error = golden.sampled(&format!("{name}.last_logits")).error(&row);
    assert!(error <= LOGITS, "{case} {name} last logits: {error:.1e}");

    let (mut greedy, margins) =
        (golden.ids(&format!("{name}.greedy")), golden.floats(&format!("{name}.margins")));
    assert_eq!((greedy.len(), margins.len()), (STEPS, STEPS));
    greedy.truncate(steps);
    let mut rows = Vec::new();
    for (index, (expected, margin)) in greedy.iter().zip(margins).enumerate() {
        model.read_logits(&mut row).unwrap();
        rows.extend_from_slice(&row);
        let chosen = model.greedy().unwrap();
        assert!(margin > MARGIN, "the golden file decides nothing");
        assert_eq!(chosen, *expected, "{case} {name} step {index}, margin {margin:e}");
        if index + 1 < greedy.len() {
            model.step(&mut sequence, chosen).unwrap();
        }
    }
    assert_eq!(sequence.len(), run.ids.len() + greedy.len() - 1);
    let step = golden.sampled(&format!("{name}.step_logits")).error_of_first(&rows);
    assert!(step <= LOGITS, "{case} {name} step logits: {step:.1e}");
    [layers, logits.max(error), step]
}

/// Runs a config's prompts of at most `longest` tokens, each with `steps` steps.
fn check<B: ScanBackend>(device: &B, case: &str, longest: usize, steps: usize) {
    let golden = Golden::open(case);
    let mut model = backbone_on(device, "golden", case, &golden, options());
    let mut checked = 0;
    for name in golden.runs() {
        if golden.ids(&format!("{name}.ids")).len() > longest {
            continue;
        }
        let [layers, logits, steps] = check_run(&mut model, &golden, case, &name, steps);
        println!("| {case} | {name} | {layers:.1e} | {logits:.1e} | {steps:.1e} |");
        checked += 1;
    }
    assert!(checked >= 3, "{checked} runs");
}

fn check_all<B: ScanBackend>(device: &B) {
    println!("| config | run | layers | logits | step logits |");
    CASES.into_iter().for_each(|case| check(device, case, usize::MAX, STEPS));
}

#[test]
fn every_stage_and_64_greedy_tokens_on_the_cpu() {
    check_all(&common::cpu());
}

#[cfg(feature = "emulated")]
#[test]
fn short_prompts_and_a_few_tokens_on_the_emulated_device() {
    // The emulation takes its time.
    let device = fermi_blas::Emulated::emulated(fermi_blas::Order::Forward).unwrap();
    ["base", "grouped"].into_iter().for_each(|case| check(&device, case, 70, 4));
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_stage_and_64_greedy_tokens_on_cuda() {
    check_all(&common::cuda());
}

#[test]
fn the_configs_vary_what_they_should() {
    assert!(!config("conv3").tie_word_embeddings && config("base").tie_word_embeddings);
    assert_eq!(config("conv3").linear_conv_kernel_dim, 3);
    assert_eq!(config("grouped").num_key_value_heads, 1);
}

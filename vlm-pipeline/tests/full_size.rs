//! The model at its published size on an NVIDIA GPU: within the paper's budget of memory, and equal to the processor.
//!
//! ```sh
//! cargo run --release -p examples --example make_checkpoint -- --out DIR
//! VLM_FULL_CHECKPOINT=DIR cargo test --release -p vlm-pipeline --features cuda --test full_size -- --ignored --nocapture
//! ```
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and shows its figures"
)]

use std::path::PathBuf;

use fermi_blas::testing::largest_error;
use fermi_blas::{Backend, Cpu, Cuda, MemoryPlan, Precision};
use qwen3_hybrid::Backbone;
use vlm_pipeline::{GenerateOptions, Image, Options, Pipeline, VlmBackend};

/// The paper's budget: a card with 6 GB, of which the driver and the libraries keep some.
const BUDGET: usize = 5_300_000_000;
const BACKBONE: usize = 1_600_000_000;
const TOWER: usize = 2_700_000_000;

/// How far the tower and the logits may be from the processor's, relative to the largest magnitude.
const EMBEDDINGS_TOLERANCE: f64 = 1e-5;
const LOGITS_TOLERANCE: f64 = 5e-5;

/// Greedy tokens are compared where the two best logits lie further apart than this, relative to the largest.
const MARGIN: f32 = 1e-4;

fn checkpoint() -> PathBuf {
    let folder = std::env::var_os("VLM_FULL_CHECKPOINT");
    folder
        .expect("VLM_FULL_CHECKPOINT must name the folder of a full-size checkpoint (see make_checkpoint)")
        .into()
}

/// A picture of 448 x 448 pixels: slopes of colour.
fn picture() -> Image {
    let pixel = |at: u32| [at % 448 / 2, at / 448 / 2, at % 97].map(|value| value as u8);
    Image::from_rgb(448, 448, (0..448 * 448).flat_map(pixel).collect()).unwrap()
}

/// A question about one picture in raw ids, which need no tokenizer, with so many ids of text before it.
fn prompt(text: u32) -> Vec<u32> {
    let mut ids = vec![248_045, 846, 198];
    ids.extend((0..text).map(|index| 1_000 + index * 7_919 % 200_000));
    ids.push(248_078);
    ids.extend([248_056; 64]);
    ids.extend([248_079, 3_710, 369, 279, 6_511, 314, 9_338, 30, 248_046, 198, 248_045, 74_455, 198]);
    ids.extend([248_068, 271, 248_069, 271]);
    ids
}

fn most(max_new_tokens: usize) -> GenerateOptions {
    GenerateOptions { max_new_tokens: Some(max_new_tokens), ignore_eos: true, ..GenerateOptions::default() }
}

#[test]
#[ignore = "needs an NVIDIA GPU and a full-size checkpoint"]
fn the_full_model_fits_the_budget_on_cuda() {
    let folder = checkpoint();
    let device = Cuda::builder(0).memory_limit(BUDGET).open().unwrap();
    // What the card holds besides buffers: the driver's context, kernels, cuBLAS; right if nobody else uses the card.
    let beside = || device.info().memory - device.free_memory().unwrap() - device.memory().in_use;
    let (products, opened) = (device.memory().in_use, beside());
    let options = Options { keep_prefix: false, ..Options::default() };
    assert_eq!((options.context_length, options.precision), (16_384, Precision::Q8));

    let backbone = qwen3_hybrid::Options::default()
        .precision(options.precision)
        .context_length(options.context_length)
        .prefill_chunk(options.prefill_chunk)
        .attention_rows(options.attention_rows);
    let config = qwen3_hybrid::Config::open(&folder).unwrap();
    let backbone: MemoryPlan = Backbone::memory_plan(&device, &config, &backbone).unwrap();
    let plan = Pipeline::memory_plan(&device, &folder, &options).unwrap();
    let tower = plan.total() - backbone.total();

    let mut pipeline = Pipeline::load(&device, &folder, options).unwrap();
    let loaded = device.memory();
    let image = pipeline.encode(&picture()).unwrap();
    let embeddings = 4 * image.embeddings().rows() * image.embeddings().columns();
    let mut session = pipeline.session();
    // A session's caches are allocated when it is first used.
    let ids = prompt(40);
    let images = std::slice::from_ref(&image);
    let first: Vec<u32> =
        pipeline.generate(&mut session, &ids, images, &most(1)).unwrap().map(Result::unwrap).collect();
    let held = device.memory();
    let generated: Vec<u32> =
        pipeline.generate(&mut session, &ids, images, &most(48)).unwrap().map(Result::unwrap).collect();
    let after = device.memory();

    println!(
        "plan: backbone {} (weights {}, caches {}, scratch {}), tower {tower}, together {}",
        backbone.total(),
        backbone.weights,
        backbone.caches,
        backbone.scratch,
        plan.total()
    );
    println!(
        "held: loaded {}, with a session {}, after an answer {}, peak {}",
        loaded.in_use, held.in_use, after.in_use, after.peak
    );
    println!("held by the device itself, for products: {products}");
    println!("the card, beside buffers: {opened} when opened, {} after an answer", beside());
    assert_eq!((generated.len(), generated[0]), (48, first[0]));
    assert_eq!(after, held, "an answer leaves nothing behind and needs nothing more");
    assert_eq!(held.peak, held.in_use, "nothing was held for a while only");
    assert_eq!(
        held.in_use - embeddings,
        loaded.in_use + backbone.caches,
        "beside the caches only the embeddings are new"
    );
    let difference = (plan.total() as f64 - (held.in_use - embeddings) as f64).abs() / plan.total() as f64;
    assert!(difference < 0.02, "the plan is off by {:.2}%", 100.0 * difference);
    assert!(backbone.total() <= BACKBONE && tower <= TOWER && held.in_use <= BUDGET);
}

/// The picture's embeddings, the logits after the prompt and after each of the following tokens, and these tokens.
fn run<B: VlmBackend>(device: &B, precision: Precision) -> (Vec<f32>, Vec<Vec<f32>>, Vec<u32>) {
    let options = Options { precision, context_length: 512, keep_prefix: false, ..Options::default() };
    let mut pipeline = Pipeline::load(device, checkpoint(), options).unwrap();
    let image = pipeline.encode(&picture()).unwrap();
    let mut session = pipeline.session();
    let ids = prompt(220);
    let mut generation =
        pipeline.generate(&mut session, &ids, std::slice::from_ref(&image), &most(8)).unwrap();
    let (mut logits, mut tokens) = (Vec::new(), Vec::new());
    while let Some(id) = generation.next() {
        logits.push(generation.logits().unwrap());
        tokens.push(id.unwrap());
    }
    (image.embeddings().to_vec(device).unwrap(), logits, tokens)
}

fn error(actual: &[f32], expected: &[f32]) -> f64 {
    largest_error(actual, &expected.iter().map(|x| f64::from(*x)).collect::<Vec<_>>())
}

#[test]
#[ignore = "needs an NVIDIA GPU, a full-size checkpoint and a minute of the processor"]
fn the_full_model_on_cuda_equals_the_processor() {
    let (cuda, cpu) = (Cuda::new(0).unwrap(), Cpu::new().unwrap());
    for precision in [Precision::F32, Precision::Q8] {
        let (embeddings, logits, tokens) = run(&cuda, precision);
        let (expected_embeddings, expected_logits, expected_tokens) = run(&cpu, precision);
        let difference = error(&embeddings, &expected_embeddings);
        println!("{precision:?}: embeddings {difference:.1e}");
        assert!(difference <= EMBEDDINGS_TOLERANCE, "embeddings {difference:.1e}");
        for (step, (logits, expected)) in logits.iter().zip(&expected_logits).enumerate() {
            let difference = error(logits, expected);
            println!("{precision:?}: logits of step {step} {difference:.1e}");
            assert!(difference <= LOGITS_TOLERANCE, "logits of step {step}: {difference:.1e}");
            let mut sorted = expected.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let largest = expected.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            if (sorted[0] - sorted[1]) / largest <= MARGIN {
                break;
            }
            assert_eq!(tokens[step], expected_tokens[step], "step {step}");
        }
    }
}

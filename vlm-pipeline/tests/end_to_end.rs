//! Pictures and questions in, tokens out: the trained tiny checkpoint against transformers (`reference/end_to_end.py`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Golden, goldens, tiny};
use fermi_blas::Precision;
use vlm_pipeline::{GenerateOptions, Options, Pipeline, RenderOptions, VlmBackend};

/// Greedy tokens are compared where the reference's two best logits lie further apart than float32 sums in another order.
const LEAST_MARGIN: f64 = 1e-4;

fn check<B: VlmBackend>(golden: &Golden, pipeline: &mut Pipeline<B>) {
    let name = &golden.name;
    let images: Vec<_> = golden.images.iter().map(|image| pipeline.encode(image).unwrap()).collect();
    let prompt = pipeline.prompt(&golden.request, &images, &RenderOptions::default()).unwrap();
    golden.check_prompt(&prompt.ids);

    let mut session = pipeline.session();
    let options = GenerateOptions { max_new_tokens: Some(64), ..GenerateOptions::default() };
    let generation = pipeline.generate(&mut session, &prompt.ids, &images, &options).unwrap();
    let tokens: Vec<u32> = generation.map(Result::unwrap).collect();
    assert!(
        golden.margins.iter().all(|&margin| margin > LEAST_MARGIN),
        "{name}: margins {:?}",
        golden.margins
    );
    assert_eq!(tokens, golden.tokens, "{name}");
    assert_eq!(pipeline.prompt_builder().unwrap().tokenizer().decode(&tokens), golden.answer, "{name}");
}

fn tokens_are_those_of_the_reference<B: VlmBackend>(device: &B) {
    let options = Options { precision: Precision::F32, context_length: 2_400, ..Options::default() };
    let mut pipeline = Pipeline::load(device, tiny(), options).unwrap();
    let goldens = goldens();
    let short: Vec<_> = goldens.iter().filter(|golden| golden.prompt_tokens <= 2_400 - 64).collect();
    assert!(short.len() >= 50, "{} prompts", short.len());
    for golden in short {
        check(golden, &mut pipeline);
    }
}

fn a_needle_in_ten_thousand_tokens_is_found<B: VlmBackend>(device: &B) {
    let options = Options { precision: Precision::F32, context_length: 10_240, ..Options::default() };
    let mut pipeline = Pipeline::load(device, tiny(), options).unwrap();
    let goldens = goldens();
    let long = goldens.iter().find(|golden| golden.prompt_tokens > 9_000).unwrap();
    check(long, &mut pipeline);
}

fn chat_gives_the_same_answers_over_its_turns<B: VlmBackend>(device: &B) {
    let options = Options { precision: Precision::F32, context_length: 1_024, ..Options::default() };
    let mut pipeline = Pipeline::load(device, tiny(), options).unwrap();
    let image = |name: &str| common::picture(name);
    let mut chat = pipeline.chat();
    let mut ask = |images: &[vlm_pipeline::Image], text: &str| {
        let pieces: Vec<String> = chat.ask(images, text).unwrap().map(Result::unwrap).collect();
        assert!(pieces.len() > 1 || pieces.concat().len() < 8, "streams in pieces: {pieces:?}");
        pieces.concat()
    };
    assert_eq!(ask(&[image("red_circle")], "What is in the image?"), "a red circle");
    assert_eq!(ask(&[image("green_square")], "What is in the second image?"), "a green square");
    assert_eq!(ask(&[], "What is the capital of Peru?"), "Lima");
    assert_eq!(chat.messages().len(), 6);
}

fn eight_bit_weights_answer_alike<B: VlmBackend>(device: &B) {
    let options = Options { context_length: 1_024, ..Options::default() };
    let mut pipeline = Pipeline::load(device, tiny(), options).unwrap();
    for golden in goldens().iter().filter(|golden| golden.name.starts_with("shape") || golden.name == "story")
    {
        let images: Vec<_> = golden.images.iter().map(|image| pipeline.encode(image).unwrap()).collect();
        let mut session = pipeline.session();
        let options = GenerateOptions { max_new_tokens: Some(64), ..GenerateOptions::default() };
        let answer = pipeline
            .answer(&mut session, &golden.request, &images, &RenderOptions::default(), &options)
            .unwrap();
        assert_eq!(answer.finish().unwrap().content, golden.answer, "{}", golden.name);
    }
}

/// A module with every test on one device.
macro_rules! end_to_end_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        end_to_end_tests!(@each [$(#[$attribute])*] $module, $device,
            tokens_are_those_of_the_reference
            a_needle_in_ten_thousand_tokens_is_found
            chat_gives_the_same_answers_over_its_turns
            eight_bit_weights_answer_alike);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($name:ident)*) => {
        mod $module {
            $(end_to_end_tests!(@one $attributes $name, $device);)*
        }
    };
    (@one [$(#[$attribute:meta])*] $name:ident, $device:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            super::$name(&$device);
        }
    };
}

end_to_end_tests!(cpu, fermi_blas::Cpu::new().unwrap());

#[cfg(feature = "emulated")]
fn check_emulated(name: &str) {
    let device = fermi_blas::Emulated::emulated(fermi_blas::Order::Forward).unwrap();
    let options = Options { precision: Precision::F32, context_length: 160, ..Options::default() };
    let mut pipeline = Pipeline::load(&device, tiny(), options).unwrap();
    let goldens = goldens();
    check(goldens.iter().find(|golden| golden.name == name).unwrap(), &mut pipeline);
}

#[cfg(feature = "emulated")]
#[test]
fn a_question_on_the_emulated_device() {
    check_emulated("capital France");
}

#[cfg(feature = "emulated")]
#[test]
fn a_picture_on_the_emulated_device() {
    check_emulated("shape red_circle");
}

#[cfg(feature = "cuda")]
end_to_end_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    fermi_blas::Cuda::new(0).unwrap()
);

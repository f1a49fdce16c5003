//! Laws of generation and of what a session remembers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{picture, tiny};
use fermi_blas::{Cpu, Precision};
use qwen3_hybrid::Sampling;
use vlm_pipeline::{
    Cancel, DownsampleMode, EncodedImage, Error, FinishReason, GenerateOptions, Image, Message, Options,
    Pipeline, RenderOptions, Request, Session,
};

fn load(options: Options) -> Pipeline {
    Pipeline::load(&Cpu::new().unwrap(), tiny(), options).unwrap()
}

/// Float32, and chunks of 16 so that short prompts cross several boundaries.
fn small() -> Options {
    Options { precision: Precision::F32, context_length: 256, prefill_chunk: 16, ..Options::default() }
}

fn greedy(max_new_tokens: usize) -> GenerateOptions {
    GenerateOptions { max_new_tokens: Some(max_new_tokens), ..GenerateOptions::default() }
}

/// The logits after the prompt, and the tokens that follow.
fn run(
    pipeline: &mut Pipeline,
    session: &mut Session,
    ids: &[u32],
    images: &[EncodedImage],
    most: usize,
) -> (Vec<f32>, Vec<u32>) {
    let generation = pipeline.generate(session, ids, images, &greedy(most)).unwrap();
    let logits = generation.logits().unwrap();
    (logits, generation.map(Result::unwrap).collect())
}

/// Ordinary ids, none of them a picture's or an end.
fn ids(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| 40 + i * 37 % 600).collect()
}

#[test]
fn d3_a_prompt_again_gives_the_same() {
    for keep_prefix in [true, false] {
        let mut pipeline = load(Options { keep_prefix, ..small() });
        let mut session = pipeline.session();
        for length in [1, 4, 63, 64, 65] {
            for most in [0, 1, 5] {
                let mut cold = pipeline.session();
                let first = run(&mut pipeline, &mut cold, &ids(length), &[], most);
                assert!(first.1.len() <= most, "{length} and {most}: {:?}", first.1);
                for _ in 0..3 {
                    assert_eq!(
                        run(&mut pipeline, &mut session, &ids(length), &[], most),
                        first,
                        "{length} and {most}"
                    );
                }
            }
        }
        let expected = if keep_prefix { 64 } else { 0 };
        assert_eq!(session.kept_tokens(), expected);
    }
}

#[test]
fn a_longer_prompt_goes_on_from_what_is_kept_to_the_same_bits() {
    let mut pipeline = load(small());
    let mut session = pipeline.session();
    run(&mut pipeline, &mut session, &ids(50), &[], 3);
    assert_eq!(session.kept_tokens(), 48);
    let generation = pipeline.generate(&mut session, &ids(90), &[], &greedy(8)).unwrap();
    assert_eq!(generation.timings().reused_tokens, 48);
    let warm = (generation.logits().unwrap(), generation.map(Result::unwrap).collect::<Vec<u32>>());
    let mut cold = pipeline.session();
    assert_eq!(run(&mut pipeline, &mut cold, &ids(90), &[], 8), warm);

    let mut other = ids(90);
    other[20] += 1;
    let generation = pipeline.generate(&mut session, &other, &[], &greedy(8)).unwrap();
    assert_eq!(generation.timings().reused_tokens, 0, "a prompt that differs starts over");
}

#[test]
fn d5_pictures_are_part_of_what_is_kept() {
    let mut pipeline = load(small());
    let red = pipeline.encode(&picture("red_circle")).unwrap();
    let blue = pipeline.encode(&picture("blue_triangle")).unwrap();
    let request = Request::new(vec![Message::user(1, "What is in the image?")]);
    let ids = |image: &EncodedImage, pipeline: &Pipeline| {
        pipeline.prompt(&request, std::slice::from_ref(image), &RenderOptions::default()).unwrap().ids
    };
    assert_eq!(ids(&red, &pipeline), ids(&blue, &pipeline), "the ids alone do not tell the pictures apart");
    let prompt = ids(&red, &pipeline);

    let cold = |image: &EncodedImage, pipeline: &mut Pipeline| {
        let mut session = pipeline.session();
        run(pipeline, &mut session, &prompt, std::slice::from_ref(image), 20)
    };
    let (cold_red, cold_blue) = (cold(&red, &mut pipeline), cold(&blue, &mut pipeline));
    assert_ne!(cold_red.1, cold_blue.1);
    let mut session = pipeline.session();
    for (image, expected) in [(&red, &cold_red), (&blue, &cold_blue), (&red, &cold_red), (&red, &cold_red)] {
        assert_eq!(run(&mut pipeline, &mut session, &prompt, std::slice::from_ref(image), 20), *expected);
        assert_eq!(session.kept_tokens(), 80);
    }
}

#[test]
fn x6_a_prompt_beyond_the_context_names_both_lengths() {
    let mut pipeline = load(small());
    let mut session = pipeline.session();
    let result = pipeline.generate(&mut session, &ids(300), &[], &greedy(1)).map(|_| ());
    assert!(matches!(result, Err(Error::PromptTooLong { prompt: 300, context: 256 })), "{result:?}");
    let message = result.unwrap_err().to_string();
    assert!(message.contains("300") && message.contains("256"), "{message}");

    let options = GenerateOptions { ignore_eos: true, ..greedy(100) };
    let mut generation = pipeline.generate(&mut session, &ids(250), &[], &options).unwrap();
    assert_eq!(generation.by_ref().map(Result::unwrap).count(), 6);
    assert_eq!(generation.finish_reason(), Some(FinishReason::Length));
    let full = pipeline.generate(&mut session, &ids(256), &[], &options).unwrap();
    assert_eq!((full.finish_reason(), full.count()), (Some(FinishReason::Length), 0));
}

#[test]
fn x6_no_picture_is_cut_to_fit() {
    let mut pipeline = load(small());
    let mut chat = pipeline.chat();
    let result = chat.ask(&[picture("sliced_word")], "What does the text say?").map(|_| ());
    assert!(matches!(result, Err(Error::PromptTooLong { prompt: 348, context: 256 })), "{result:?}");
    assert!(chat.messages().is_empty(), "a turn that failed leaves no trace");
    assert_eq!(
        chat.ask(&[picture("word_hello")], "What does the text say?").unwrap().finish().unwrap().content,
        "HELLO"
    );
}

#[test]
fn a8_embeddings_are_those_of_each_image_alone() {
    let mut pipeline = load(small());
    let device = pipeline.device().clone();
    let plain = |rgb: [u8; 3], width, height| {
        let pixels = rgb.iter().copied().cycle().take(3 * width as usize * height as usize).collect();
        Image::from_rgb(width, height, pixels).unwrap()
    };
    let images = [plain([255, 0, 0], 448, 448), plain([0, 0, 255], 448, 448), plain([0, 255, 0], 600, 400)];
    let alone: Vec<Vec<f32>> = images
        .iter()
        .map(|image| pipeline.encode(image).unwrap().embeddings().to_vec(&device).unwrap())
        .collect();
    let mut other = load(small());
    for (image, expected) in images.iter().zip(&alone).rev() {
        assert_eq!(other.encode(image).unwrap().embeddings().to_vec(&device).unwrap(), *expected);
    }
    let pads: Vec<usize> = alone.iter().map(|values| values.len() / 128).collect();
    assert_eq!(pads, [64, 64, 196]);
}

#[test]
fn x3_prompt_and_tower_share_one_mode() {
    let image = picture("red_circle");
    for (mode, pads) in [(None, 64), (Some(DownsampleMode::X16), 64), (Some(DownsampleMode::X4), 256)] {
        let mut pipeline = load(Options { downsample_mode: mode, context_length: 1_024, ..small() });
        let encoded = pipeline.encode(&image).unwrap();
        assert_eq!(encoded.embeddings().rows(), pads);
        let request = Request::new(vec![Message::user(1, "What is in the image?")]);
        let mut session = pipeline.session();
        let answer =
            pipeline.answer(&mut session, &request, &[encoded], &RenderOptions::default(), &greedy(4));
        assert_eq!(answer.unwrap().timings().prompt_tokens, 24 + pads);
    }
}

#[test]
fn x4_a_stop_token_ends_with_reason_stop() {
    let mut pipeline = load(small());
    assert_eq!(pipeline.stop_ids().iter().collect::<Vec<_>>(), [755, 757]);
    let ids = pipeline
        .prompt(&Request::new(vec![Message::user(0, "What is 3 + 4?")]), &[], &RenderOptions::default())
        .unwrap()
        .ids;
    let mut session = pipeline.session();
    let mut generation = pipeline.generate(&mut session, &ids, &[], &greedy(20)).unwrap();
    let tokens: Vec<u32> = generation.by_ref().map(Result::unwrap).collect();
    assert_eq!((tokens.last(), generation.finish_reason()), (Some(&757), Some(FinishReason::Stop)));
    let on = GenerateOptions { ignore_eos: true, ..greedy(20) };
    let mut generation = pipeline.generate(&mut session, &ids, &[], &on).unwrap();
    assert_eq!(generation.by_ref().map(Result::unwrap).count(), 20);
    assert_eq!(generation.finish_reason(), Some(FinishReason::Length));
}

#[test]
fn e5_cancelling_ends_within_a_step_or_a_chunk() {
    let mut pipeline = load(small());
    let mut session = pipeline.session();
    let cancel = Cancel::new();
    let options = GenerateOptions { cancel: Some(cancel.clone()), ignore_eos: true, ..greedy(50) };
    let mut generation = pipeline.generate(&mut session, &ids(20), &[], &options).unwrap();
    assert_eq!(generation.by_ref().take(3).map(Result::unwrap).count(), 3);
    cancel.cancel();
    assert!(generation.next().is_none());
    assert_eq!(
        (generation.finish_reason(), generation.timings().new_tokens),
        (Some(FinishReason::Cancelled), 3)
    );

    let mut early = pipeline.generate(&mut session, &ids(200), &[], &options).unwrap();
    assert!(early.next().is_none());
    assert_eq!(early.finish_reason(), Some(FinishReason::Cancelled));

    let mut cold = pipeline.session();
    let expected = run(&mut pipeline, &mut cold, &ids(200), &[], 5);
    assert_eq!(run(&mut pipeline, &mut session, &ids(200), &[], 5), expected, "the next prompt is unharmed");
}

#[test]
fn a_dropped_answer_leaves_what_was_said() {
    let mut pipeline = load(small());
    let mut chat = pipeline.chat().system("Be brief.");
    let mut answer = chat.ask(&[], "Tell me a story.").unwrap();
    let begun: String = (&mut answer).take(3).map(Result::unwrap).collect();
    drop(answer);
    assert_eq!(chat.messages().len(), 3);
    let last = serde_json::to_value(&chat.messages()[2]).unwrap();
    assert_eq!(last, serde_json::json!({"role": "assistant", "content": begun}));
    assert_eq!(chat.ask(&[], "What is 3 + 4?").unwrap().finish().unwrap().content, "7");
    chat.clear();
    assert_eq!(chat.messages().len(), 1);
}

#[test]
fn step_logits_choose_the_tokens() {
    let mut pipeline = load(small());
    let mut session = pipeline.session();
    let mut generation = pipeline.generate(&mut session, &ids(30), &[], &greedy(6)).unwrap();
    let after_prompt = generation.logits().unwrap();
    let (mut best, mut tokens, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(id) = generation.next() {
        let logits = generation.logits().unwrap();
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        best.push(logits.iter().position(|&logit| logit == largest).unwrap() as u32);
        tokens.push(id.unwrap());
        steps.push(logits);
    }
    assert_eq!(steps[0], after_prompt);
    assert_ne!(steps[0], steps[1]);
    assert_eq!(best, tokens);
}

#[test]
fn pads_and_embeddings_must_be_as_many() {
    let mut pipeline = load(small());
    let image = pipeline.encode(&picture("red_circle")).unwrap();
    let mut session = pipeline.session();
    for pads in [0, 63, 65] {
        let ids = vec![758; pads].into_iter().chain(ids(3)).collect::<Vec<_>>();
        let result =
            pipeline.generate(&mut session, &ids, std::slice::from_ref(&image), &greedy(1)).map(|_| ());
        assert!(
            matches!(result, Err(Error::PadCount { pads: p, embeddings: 64 }) if p == pads),
            "{result:?}"
        );
    }
    let result = pipeline.generate(&mut session, &[], &[], &greedy(1)).map(|_| ());
    assert!(matches!(result, Err(Error::Backbone(_))), "{result:?}");
}

#[test]
fn pipelines_that_share_weights_answer_alike() {
    let mut pipeline = load(small());
    let mut other = pipeline.share().unwrap();
    let (mut first, mut second) = (pipeline.session(), other.session());
    assert_eq!(
        run(&mut pipeline, &mut first, &ids(40), &[], 5),
        run(&mut other, &mut second, &ids(40), &[], 5)
    );
}

#[test]
fn a_picture_of_extreme_aspect_is_a_typed_error() {
    let mut pipeline = load(small());
    let thin = Image::from_rgb(5_000, 1, vec![9; 15_000]).unwrap();
    let result = pipeline.encode(&thin);
    assert!(matches!(&result, Err(Error::Tower(_))), "{result:?}");
    let message = result.unwrap_err().to_string();
    assert!(message.contains("8576") && message.contains("1280"), "{message}");
}

#[test]
fn progress_is_told() {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};
    let (calls, last) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new((0, 0))));
    let (calls_of, last_of) = (Arc::clone(&calls), Arc::clone(&last));
    let progress = move |read, all| {
        calls_of.fetch_add(1, Ordering::Relaxed);
        *last_of.lock().unwrap() = (read, all);
    };
    load(Options { progress: Some(Arc::new(progress)), ..small() });
    let (read, all) = *last.lock().unwrap();
    assert!(calls.load(Ordering::Relaxed) > 10 && read == all && all > 9_000_000, "{read} of {all}");
}

#[test]
fn draws_repeat_by_their_seed_and_bad_parameters_are_typed_errors() {
    let mut pipeline = load(small());
    let mut session = pipeline.session();
    let mut draw = |temperature: f64, seed: u64| {
        let sampling = Sampling { temperature, seed, ..Sampling::default() };
        let options = GenerateOptions { sampling, ignore_eos: true, ..greedy(30) };
        let generation = pipeline.generate(&mut session, &ids(20), &[], &options)?;
        generation.collect::<vlm_pipeline::Result<Vec<u32>>>()
    };
    let first = draw(3.0, 1).unwrap();
    assert_eq!(draw(3.0, 1).unwrap(), first);
    assert_ne!(draw(3.0, 2).unwrap(), first);
    for temperature in [f64::NAN, -1.0, f64::INFINITY] {
        assert!(matches!(draw(temperature, 1), Err(Error::Backbone(_))), "{temperature}");
    }
}

#[test]
fn conversations_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let mut pipeline = load(small());
    let mut session = pipeline.session();
    is_send(&pipeline);
    is_send(&session);
    is_send(&pipeline.generate(&mut session, &ids(4), &[], &greedy(1)).unwrap());
}

//! Checkpoints that lack something or contradict themselves.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::PathBuf;

use common::{picture, tiny};
use fermi_blas::{Backend, Cpu};
use serde_json::Value;
use vlm_pipeline::{Error, GenerateOptions, Message, Options, Pipeline, RenderOptions, Request};

/// A copy of the tiny checkpoint's small files beside a link to its weights.
fn copy(name: &str, without: &[&str], config: impl FnOnce(&mut Value)) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("loading-{name}"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    for entry in std::fs::read_dir(tiny()).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap();
        if !without.contains(&file) {
            std::fs::copy(&path, dir.join(file)).unwrap();
        }
    }
    let path = dir.join("config.json");
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config(&mut json);
    std::fs::write(&path, json.to_string()).unwrap();
    dir
}

fn load(dir: &PathBuf) -> vlm_pipeline::Result<Pipeline> {
    Pipeline::load(&Cpu::new().unwrap(), dir, Options { context_length: 256, ..Options::default() })
}

#[test]
fn without_a_tokenizer_raw_ids_still_run() {
    let dir = copy("ids", &["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"], |_| {});
    let mut pipeline = load(&dir).unwrap();
    let image = pipeline.encode(&picture("red_circle")).unwrap();
    let request = Request::new(vec![Message::user(1, "?")]);
    assert!(matches!(pipeline.prompt(&request, &[], &RenderOptions::default()), Err(Error::NoTokenizer)));
    assert_eq!(pipeline.stop_ids().iter().collect::<Vec<_>>(), [755, 757]);
    let mut session = pipeline.session();
    let options = GenerateOptions { max_new_tokens: Some(2), ignore_eos: true, ..GenerateOptions::default() };
    let ids: Vec<u32> = std::iter::repeat_n(758, 64).chain([40, 41]).collect();
    let generation = pipeline.generate(&mut session, &ids, &[image], &options).unwrap();
    assert_eq!(generation.map(Result::unwrap).count(), 2);
}

#[test]
fn without_a_vision_config_it_is_a_text_model() {
    let dir = copy("text", &[], |config| {
        config.as_object_mut().unwrap().remove("vision_config");
    });
    let mut pipeline = load(&dir).unwrap();
    assert!(pipeline.tower().is_none());
    assert!(matches!(pipeline.encode(&picture("red_circle")), Err(Error::NoTower)));
    assert_eq!(pipeline.chat().ask(&[], "What is 3 + 4?").unwrap().finish().unwrap().content, "7");
}

#[test]
fn two_image_tokens_are_a_typed_error() {
    let dir = copy("mismatch", &[], |config| config["image_token_id"] = 700.into());
    let result = load(&dir);
    assert!(matches!(result, Err(Error::ImageTokenMismatch { config: 700, tokenizer: 758 })), "{result:?}");
    let dir = copy("no-id", &[], |config| config["image_token_id"] = "x".into());
    assert!(matches!(load(&dir), Err(Error::ImageTokenId { value, .. }) if value == "\"x\""));
}

#[test]
fn missing_files_are_named() {
    let nowhere = PathBuf::from("nowhere/at/all");
    assert!(matches!(load(&nowhere), Err(Error::ReadFile { path, .. }) if path.ends_with("config.json")));
    let dir = copy("weights", &["model.safetensors"], |_| {});
    let error = load(&dir).unwrap_err();
    assert!(matches!(error, Error::Blas(_)) && error.to_string().contains("loading-weights"), "{error}");
}

#[test]
fn the_memory_plan_tells_what_is_held() {
    for keep_prefix in [true, false] {
        let device = Cpu::new().unwrap();
        let options = Options { context_length: 512, prefill_chunk: 32, keep_prefix, ..Options::default() };
        let plan = Pipeline::memory_plan(&device, tiny(), &options).unwrap();
        let before = device.memory().in_use;
        let mut pipeline = Pipeline::load(&device, tiny(), options).unwrap();
        let mut chat = pipeline.chat();
        // Longer than a chunk, so that a copy is kept where one is.
        chat.ask(&[], "What is the capital of France? ".repeat(8)).unwrap().finish().unwrap();
        let held = device.memory().in_use - before;
        let difference = (plan.total() as f64 - held as f64).abs() / held as f64;
        assert!(difference < 0.02, "{keep_prefix}: planned {plan:?}, held {held}");
    }
}

use super::*;

fn tiny() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/assets/tiny"))
}

/// A checkpoint folder with these small files beside the tiny tokenizer.
fn folder(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("stop-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::copy(tiny().join("tokenizer.json"), dir.join("tokenizer.json")).unwrap();
    for (file, text) in files {
        std::fs::write(dir.join(file), text).unwrap();
    }
    dir
}

/// The stop ids of a folder made for the test, which goes then, or of the tiny checkpoint.
fn ids(dir: &Path) -> Result<Vec<u32>> {
    let tokenizer = Tokenizer::load(dir)?;
    let ids = StopIds::load(dir, Some(&tokenizer)).map(|ids| ids.iter().collect());
    if dir != tiny() {
        std::fs::remove_dir_all(dir).unwrap();
    }
    ids
}

#[test]
fn x4_stop_ids_are_the_union() {
    assert_eq!(ids(tiny()).unwrap(), [755, 757]);
    let dir = folder(
        "union",
        &[
            ("generation_config.json", r#"{"eos_token_id": 755}"#),
            ("tokenizer_config.json", r#"{"eos_token": {"content": "<|im_end|>"}}"#),
        ],
    );
    assert_eq!(ids(&dir).unwrap(), [755, 757]);
    let dir = folder("tokenizer", &[("tokenizer_config.json", r#"{"eos_token": "<|im_end|>"}"#)]);
    assert_eq!(ids(&dir).unwrap(), [757]);
}

#[test]
fn config_json_is_asked_last() {
    let dir = folder("config", &[("config.json", r#"{"text_config": {"eos_token_id": 757}}"#)]);
    assert_eq!(ids(&dir).unwrap(), [757]);
}

#[test]
fn a_stop_id_that_is_none_is_a_typed_error() {
    let dir = folder("bad", &[("generation_config.json", r#"{"eos_token_id": [1, "x"]}"#)]);
    assert!(matches!(ids(&dir), Err(Error::StopId { value, .. }) if value == "\"x\""));
    let dir = folder("broken", &[("generation_config.json", "{")]);
    assert!(
        matches!(ids(&dir), Err(Error::ReadJson { path, .. }) if path.ends_with("generation_config.json"))
    );
}

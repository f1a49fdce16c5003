use super::*;

fn tiny_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/assets/tiny"))
}

/// The tiny tokenizer with another list of added tokens.
fn with_added(name: &str, added: Value) -> Tokenizer {
    let mut json: Value =
        serde_json::from_str(&std::fs::read_to_string(tiny_dir().join("tokenizer.json")).unwrap()).unwrap();
    json["added_tokens"] = added;
    let dir = std::env::temp_dir().join(format!("added-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tokenizer.json"), json.to_string()).unwrap();
    let tokenizer = Tokenizer::load(&dir).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    tokenizer
}

fn token(id: u32, content: &str, flags: &[&str]) -> Value {
    let has = |flag: &str| flags.contains(&flag);
    serde_json::json!({"id": id, "content": content, "single_word": has("single_word"), "lstrip": has("lstrip"),
        "rstrip": has("rstrip"), "normalized": has("normalized"), "special": has("special")})
}

#[test]
fn added_tokens_are_cut_out_as_the_library_does() {
    let added = serde_json::json!([
        token(755, "<a>", &["special"]),
        token(756, "<a><b>", &["special"]),
        token(757, "<l>", &["special", "lstrip"]),
        token(758, "<r>", &["rstrip"]),
        token(759, "word", &["single_word"]),
        token(760, "<n>", &["normalized"]),
        token(761, "\n\n\n", &[]),
    ]);
    let ours = with_added("flags", added.clone());
    let mut json: Value =
        serde_json::from_str(&std::fs::read_to_string(tiny_dir().join("tokenizer.json")).unwrap()).unwrap();
    json["added_tokens"] = added;
    let library = tokenizers::Tokenizer::from_bytes(json.to_string()).unwrap();
    for text in [
        "x<a>y",
        "<a><b><a>",
        "<a><a><b>",
        "x  <l>  y",
        "x <r>  y<l>",
        "a word, wordy sword word",
        "word",
        "x<n>y<n>",
        "<a>  <l><l>",
        "a\n\n\n\n\nb",
        "<r>\n\n\n\nx",
        "",
        "<",
        "é<a>é",
        "<r> <l> <r>",
    ] {
        let expected = library.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ours.encode(text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn tokens_of_white_space_do_not_control() {
    let ours = with_added("space", serde_json::json!([token(755, "\n\n\n", &[]), token(756, "<a>", &[])]));
    assert_eq!(ours.control_tokens().collect::<Vec<_>>(), ["<a>"]);
}

#[test]
fn a_missing_or_broken_tokenizer_is_a_typed_error() {
    let dir = std::env::temp_dir().join(format!("no-tokenizer-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    assert!(
        matches!(Tokenizer::load(&dir), Err(Error::ReadFile { path, .. }) if path.ends_with("tokenizer.json"))
    );
    std::fs::write(dir.join("tokenizer.json"), "{}").unwrap();
    assert!(
        matches!(Tokenizer::load(&dir), Err(Error::Tokenizer { path, .. }) if path.ends_with("tokenizer.json"))
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn names_come_from_the_config_in_either_form() {
    let tokenizer = Tokenizer::load(tiny_dir()).unwrap();
    assert_eq!(tokenizer.named("image_token"), Some("<|image_pad|>"));
    assert_eq!(tokenizer.eos_id(), Some(757));
    assert_eq!(tokenizer.template_variables()["pad_token"], "<|endoftext|>");
    assert_eq!(token_text(&serde_json::json!({"content": "x"})), Some("x"));
}

//! Prompt ids against transformers' processor and tokenizer (`reference/text_goldens.py`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{data, ids, records, runs, tiny};
use vlm_pipeline::{
    ChatTemplate, Error, ImageSource, Limits, Message, Part, Plan, PreprocessorConfig, Prompt, PromptBuilder,
    ReasoningStart, RenderOptions, Request, Role, Thinking, Tokenizer,
};

fn builder(template: &str, use_image_id: bool) -> PromptBuilder {
    let tokenizer = Tokenizer::load(&tiny()).unwrap();
    let template = match template {
        "qwen" => ChatTemplate::new(&data("qwen3.5-chat-template.jinja")).unwrap(),
        _ => ChatTemplate::load(&tiny(), &tokenizer).unwrap(),
    };
    PromptBuilder::new(tokenizer, template, use_image_id)
}

fn plan(size: (u32, u32)) -> Plan {
    Plan::new(size.0, size.1, &PreprocessorConfig::default()).unwrap()
}

/// As the reference was run: nothing said about thinking.
fn options() -> RenderOptions {
    RenderOptions { add_generation_prompt: true, thinking: Thinking::TemplateDefault }
}

#[test]
fn prompt_ids_are_the_processors() {
    for record in records("prompt_ids.json") {
        let mut config = PreprocessorConfig::default();
        if let Some(mode) = record["downsample_mode"].as_str() {
            config.downsample_mode = mode.parse().unwrap();
        }
        if let Some(most) = record["max_slice_nums"].as_u64() {
            config.max_slice_nums = u32::try_from(most).unwrap();
        }
        config.slice_mode = record["slice_mode"].as_bool().unwrap_or(true);
        let sizes = record["sizes"].as_array().unwrap().iter().map(ids);
        let plans: Vec<Plan> = sizes.map(|size| Plan::new(size[0], size[1], &config).unwrap()).collect();
        let template = record["template"].as_str().unwrap_or("tiny");
        let builder = builder(template, record["use_image_id"].as_bool().unwrap_or(true));
        let request: Request = serde_json::from_value(record.clone()).unwrap();
        let prompt = builder.build(&request, &plans, &options()).unwrap();
        assert_eq!(prompt.ids, runs(&record["ids"]), "{record}");
    }
}

#[test]
fn typed_control_tokens_are_encoded_as_the_reference_does() {
    for record in records("control_tokens.json") {
        let builder = builder(record["template"].as_str().unwrap(), true);
        let request: Request = serde_json::from_value(record.clone()).unwrap();
        let prompt = builder.build(&request, &[], &options()).unwrap();
        assert_eq!(prompt.ids, ids(&record["ids"]), "{record}");
    }
}

#[test]
fn texts_encode_and_decode_as_the_reference_does() {
    let tokenizer = Tokenizer::load(&tiny()).unwrap();
    for record in records("texts.json") {
        let text = record["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text).unwrap(), ids(&record["ids"]), "{text:?}");
        assert_eq!(tokenizer.decode(&ids(&record["ids"])), record["decoded"].as_str().unwrap(), "{text:?}");
    }
}

/// The pads of each image and the number it carries.
fn pads_and_numbers(prompt: &Prompt, builder: &PromptBuilder) -> Vec<(usize, String)> {
    let tokenizer = builder.tokenizer();
    let pad = builder.image_pad().unwrap();
    let close = tokenizer.token_id("</image_id>").unwrap();
    let images = prompt.images.iter().map(|range| {
        let ids = &prompt.ids[range.clone()];
        let end = ids.iter().position(|&id| id == close).unwrap();
        (ids.iter().filter(|&&id| id == pad).count(), tokenizer.decode(&ids[1..end]))
    });
    images.collect()
}

#[test]
fn a8_neighbouring_images_stay_in_order() {
    let builder = builder("tiny", true);
    let image = || Part::Image(ImageSource::Supplied);
    let text = |text: &str| Part::Text(text.to_owned());
    let parts = vec![text("one"), image(), image(), text("two"), image(), text("three")];
    let request = Request::new(vec![Message::parts(Role::User, parts)]);
    let plans = [plan((448, 448)), plan((448, 448)), plan((600, 400))];
    let prompt = builder.build(&request, &plans, &options()).unwrap();
    let expected = [(64, "0"), (64, "1"), (196, "2")].map(|(pads, number)| (pads, number.to_owned()));
    assert_eq!(pads_and_numbers(&prompt, &builder), expected);
}

#[test]
fn a2_line_breaks_stand_between_slice_rows_only() {
    let builder = builder("tiny", true);
    let request = Request::new(vec![Message::user(1, "?")]);
    let tokenizer = builder.tokenizer();
    let line_break = tokenizer.encode("\n").unwrap()[0];
    for (size, rows) in [((448, 896), 2), ((820, 1084), 3), ((1084, 820), 2), ((448, 448), 1)] {
        let prompt = builder.build(&request, &[plan(size)], &options()).unwrap();
        let picture = &prompt.ids[prompt.images[0].clone()];
        assert_eq!(picture.iter().filter(|&&id| id == line_break).count(), rows - 1, "{size:?}");
        assert_ne!(picture.last(), Some(&line_break), "{size:?}");
    }
}

#[test]
fn x13_parts_stay_in_the_order_sent() {
    let builder = builder("qwen", true);
    let request = Request::from_json(
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"first"},{"type":"image_url","image_url":{"url":"a.png"}},
            {"type":"text","text":"second"},{"type":"image","path":"b.png"}]}]}"#,
    )
    .unwrap();
    let plans = [plan((448, 448)), plan((448, 896))];
    let prompt = builder.build(&request, &plans, &options()).unwrap();
    let image = "<|vision_start|><|image_pad|><|vision_end|>";
    assert!(prompt.text.contains(&format!("user\nfirst{image}second{image}<|im_end|>")), "{}", prompt.text);
    let pads: Vec<usize> = pads_and_numbers(&prompt, &builder).into_iter().map(|(pads, _)| pads).collect();
    assert_eq!(pads, [64, 194]);
    let sources: Vec<String> = request.image_sources().map(|source| format!("{source:?}")).collect();
    assert_eq!(sources, ["Reference(\"a.png\")", "Reference(\"b.png\")"]);
}

#[test]
fn a_wrong_number_of_images_is_a_typed_error() {
    let builder = builder("tiny", true);
    for (placed, given) in [(0, 1), (1, 0), (2, 1), (1, 3)] {
        let request = Request::new(vec![Message::user(placed, "?")]);
        let plans = vec![plan((448, 448)); given];
        let result = builder.build(&request, &plans, &options());
        assert!(
            matches!(result, Err(Error::ImageCount { placeholders, images }) if (placeholders, images) == (placed, given)),
            "{placed} placed, {given} given: {result:?}"
        );
    }
}

#[test]
fn a_missing_control_token_is_named() {
    let tokenizer = Tokenizer::load(&tiny()).unwrap();
    assert!(
        matches!(tokenizer.require("<|nowhere|>"), Err(Error::MissingToken { token }) if token == "<|nowhere|>")
    );
}

#[test]
fn image_parts_are_opened_from_files_and_data_urls_alone() {
    let open = |reference: &str| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pictures");
        ImageSource::Reference(reference.to_owned()).open(&folder, &Limits::default())
    };
    assert_eq!(open("red_circle.png").unwrap().width(), 448);
    let absolute = common::tiny().join("sample_hello.png").canonicalize().unwrap();
    assert_eq!(open(&format!("file://{}", absolute.display())).unwrap().width(), 448);
    let pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    assert_eq!(open(pixel).unwrap().width(), 1);
    assert!(
        matches!(open("https://example.org/a.png"), Err(Error::RemoteImage { scheme }) if scheme == "https")
    );
    assert!(matches!(open("absent.png"), Err(Error::ReadImage { .. })));
    let supplied = ImageSource::Supplied.open(std::path::Path::new(""), &Limits::default());
    assert!(matches!(supplied, Err(Error::SuppliedImage)));
}

#[test]
fn messages_read_as_clients_send_them_and_write_back_the_same() {
    let text = r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"b.png"}},{"type":"image"}]},
        {"role":"assistant","content":"c","reasoning_content":"d","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},
        {"role":"tool","content":"e","tool_call_id":"1"}]"#;
    let request = Request::from_json(text).unwrap();
    let written: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(&request.messages).unwrap(), written);

    let sent = r#"{"messages":[{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"x\": 1}"}}]}]}"#;
    let request = Request::from_json(sent).unwrap();
    let call = &request.messages[0].tool_calls.as_ref().unwrap()[0];
    assert_eq!(call.function.arguments, serde_json::json!({"x": 1}));
    assert!(request.messages[0].content.is_none());

    for wrong in [
        r#"[{"role":"wizard","content":"a"}]"#,
        r#"[{"role":"user","content":[{"type":"video","video":"a.mp4"}]}]"#,
        r#"[{"role":"user","content":[{"type":"text"}]}]"#,
        r#"[{"role":"user","content":[{"type":"image","image":7}]}]"#,
        r#"{"tools":[]}"#,
        "",
        "[",
        "7",
    ] {
        assert!(matches!(Request::from_json(wrong), Err(Error::MessagesJson { .. })), "{wrong}");
    }
}

#[test]
fn x5_the_prompts_end_tells_how_the_answer_begins() {
    let request = Request::new(vec![Message::user(0, "Is <think> a tag?")]);
    let start = |template: &str, thinking| {
        let options = RenderOptions { add_generation_prompt: true, thinking };
        builder(template, true).build(&request, &[], &options).unwrap().reasoning
    };
    assert_eq!(start("qwen", Thinking::On), ReasoningStart::Open);
    assert_eq!(start("qwen", Thinking::TemplateDefault), ReasoningStart::Open);
    assert_eq!(start("qwen", Thinking::Off), ReasoningStart::Off);
    assert_eq!(start("tiny", Thinking::On), ReasoningStart::Off, "its template always closes the thoughts");

    let silent = ChatTemplate::new("{{ messages[0].content }}<|im_start|>assistant\n").unwrap();
    let builder = PromptBuilder::new(Tokenizer::load(&tiny()).unwrap(), silent, true);
    for (thinking, expected) in
        [(Thinking::On, ReasoningStart::Expected), (Thinking::Off, ReasoningStart::Off)]
    {
        let options = RenderOptions { add_generation_prompt: true, thinking };
        assert_eq!(builder.build(&request, &[], &options).unwrap().reasoning, expected);
    }
}

//! The checkpoint's chat template against Jinja2 under transformers (`reference/text_goldens.py`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{data, records, tiny};
use serde_json::{Map, Value};
use vlm_pipeline::{ChatTemplate, Error, PromptBuilder, RenderOptions, Request, Thinking, Tokenizer};

fn template(name: &str) -> ChatTemplate {
    match name {
        "qwen" => ChatTemplate::new(&data("qwen3.5-chat-template.jinja")).unwrap(),
        _ => ChatTemplate::load(&tiny(), &Tokenizer::load(&tiny()).unwrap()).unwrap(),
    }
}

fn thinking(flag: &Value) -> Thinking {
    match flag.as_bool() {
        Some(true) => Thinking::On,
        Some(false) => Thinking::Off,
        None => Thinking::TemplateDefault,
    }
}

#[test]
fn conversations_render_byte_for_byte() {
    let records = records("chat_template.json");
    let mut rendered = 0;
    for record in &records {
        let name = format!("{} under {}", record["name"], record["template"]);
        let template = template(record["template"].as_str().unwrap());
        let request: Request =
            serde_json::from_value(record.clone()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let Some(text) = record["text"].as_str() else {
            let result = template.render(&request, &RenderOptions::default(), &Map::new());
            match record["error"].as_str() {
                Some(expected) => {
                    assert!(
                        matches!(&result, Err(Error::TemplateRaised { message }) if message == expected),
                        "{name}: {result:?}"
                    );
                }
                None => assert!(result.is_err(), "{name}: {result:?}"),
            }
            continue;
        };
        for variant in record["variants"].as_array().unwrap() {
            let options = RenderOptions {
                add_generation_prompt: variant[0].as_bool().unwrap(),
                thinking: thinking(&variant[1]),
            };
            let expected = format!("{text}{}", variant[2].as_str().unwrap());
            let result = template.render(&request, &options, &Map::new());
            assert_eq!(
                result.unwrap_or_else(|e| panic!("{name}: {e}: {:?}", e)),
                expected,
                "{name} {options:?}"
            );
            rendered += 1;
        }
    }
    assert!(rendered > 200, "{rendered} conversations rendered");
}

#[test]
fn jinja_is_pythons() {
    let mut wrong = Vec::new();
    for record in records("jinja.json") {
        let source = record["template"].as_str().unwrap();
        let variables = record["variables"].as_object().unwrap();
        let result = ChatTemplate::new(source)
            .and_then(|template| template.render(&Request::default(), &RenderOptions::default(), variables));
        let right = match (record["text"].as_str(), &result) {
            (Some(expected), Ok(text)) => text == expected,
            (None, Err(Error::TemplateRaised { message })) => record["error"].as_str() == Some(message),
            (None, Err(_)) => record["error"].is_null(),
            _ => false,
        };
        if !right {
            wrong.push(format!(
                "{source}\n  expected {}{}\n  got      {result:?}",
                record["text"], record["error"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_checkpoint_without_a_template_gets_the_default() {
    let tokenizer = Tokenizer::load(&tiny()).unwrap();
    let template = ChatTemplate::new(vlm_pipeline::DEFAULT_TEMPLATE).unwrap();
    let builder = PromptBuilder::new(tokenizer, template, true);
    let request = Request::from_json(
        r#"[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},
            {"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]"#,
    )
    .unwrap();
    let text = |thinking| {
        let options = RenderOptions { add_generation_prompt: true, thinking };
        builder.build(&request, &[], &options).unwrap().text
    };
    let turns = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n\
                 <|im_start|>user\nc\nd<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(text(Thinking::Off), format!("{turns}<think>\n\n</think>\n\n"));
    assert_eq!(text(Thinking::TemplateDefault), format!("{turns}<think>\n\n</think>\n\n"));
    assert_eq!(text(Thinking::On), format!("{turns}<think>\n"));
}

#[test]
fn a_template_that_is_no_jinja_is_a_typed_error() {
    assert!(matches!(ChatTemplate::new("{% if %}"), Err(Error::TemplateSyntax { .. })));
}

//! Programs that answer: describe, chat, generate, prompt.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use vlm_pipeline::Tokenizer;

use crate::program::{Program, folder, path, repository, tiny};

fn describe() -> Program {
    Program::new("describe")
}

#[test]
fn describe_without_arguments_reads_the_bundled_picture() {
    assert_eq!(describe().succeed(), "a red circle\n");
}

#[test]
fn describe_reads_pictures_and_the_question_last() {
    let question = "What does the text say?";
    assert_eq!(describe().arg(tiny("sample_hello.png")).arg(question).succeed(), "HELLO\n");
    assert_eq!(describe().arg(tiny("sample_sliced.png")).arg(question).succeed(), "547\n");
    assert_eq!(describe().arg("What is the capital of France?").succeed(), "Paris\n");
}

#[test]
fn describe_takes_the_common_options() {
    for options in ["--precision f32 --threads 1", "--device auto", "--device cpu --precision q8 --threads 3"]
    {
        assert_eq!(describe().args(options).succeed(), "a red circle\n", "{options}");
    }
    assert_eq!(describe().args("--max-new-tokens 1").succeed(), "a\n");
    let drawn = || describe().args("--temperature 5 --seed 3 --max-new-tokens 8").succeed();
    assert_eq!(drawn(), drawn());
    assert_ne!(drawn(), "a red circle\n");
}

#[test]
fn an_output_that_is_closed_early_is_no_error() {
    let command = Command::new(path("describe"))
        .arg("Tell me a story.")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = command.unwrap();
    let mut start = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn chat_answers_from_a_pipe_and_remembers_pictures() {
    let (hello, circle) = (tiny("sample_hello.png"), tiny("sample_red_circle.png"));
    let input = format!(
        "/image {}\nWhat does the text say?\n\n/image {}\nWhat is in the second image?\n/reset\nWhat is 3 + 4?\n/quit\nWhat is 3 + 4?\n",
        hello.display(),
        circle.display()
    );
    assert_eq!(Program::new("chat").input(&input).succeed(), "HELLO\na red circle\n7\n");
    assert_eq!(Program::new("chat").succeed(), "");
}

#[test]
fn chat_thinks_on_request() {
    let outcome = Program::new("chat").input("/think on\nWhat is 3 + 4?\n/think off\nWhat is 3 + 4?\n").run();
    assert_eq!(outcome.status, Some(0));
    // The small checkpoint never learnt to think; with thinking off its answer is the plain one.
    assert!(outcome.stdout.ends_with("7\n"), "{outcome:?}");
}

/// A conversation of one question about pictures, as a file.
fn messages(name: &str, pictures: &[&str], question: &str) -> std::path::PathBuf {
    let image = |file: &&str| json!({"type": "image_url", "image_url": {"url": file}});
    let mut parts: Vec<Value> = pictures.iter().map(image).collect();
    parts.push(json!({"type": "text", "text": question}));
    let file = folder(name).join("messages.json");
    fs::write(&file, json!([{"role": "user", "content": parts}]).to_string()).unwrap();
    file
}

#[test]
fn generate_continues_the_ids_of_prompt() {
    let picture = tiny("sample_red_circle.png");
    let file = messages("generate", &[picture.to_str().unwrap()], "What is in the image?");
    let prompt = Program::new("prompt").option("--messages", &file).json();
    let ids: Vec<String> = prompt["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    let generate = || Program::new("generate").option("--ids", ids.join(",")).option("--image", &picture);

    let out = generate().json();
    assert_eq!(out["prompt_tokens"], ids.len());
    assert!(out["prefill_seconds"].as_f64().unwrap() > 0.0 && out["decode_seconds"].as_f64().unwrap() > 0.0);
    let generated: Vec<u32> = serde_json::from_value(out["ids"].clone()).unwrap();
    let (stop, answer) = generated.split_last().unwrap();
    let tokenizer = Tokenizer::load(&tiny("")).unwrap();
    assert_eq!(tokenizer.decode(answer), "a red circle");
    assert_eq!(Some(*stop), tokenizer.eos_id());

    let plain: Vec<String> = generated.iter().map(u32::to_string).collect();
    assert_eq!(generate().succeed(), format!("{}\n", plain.join(",")));
    let more = generate().args("--ignore-eos --max-new-tokens 20").json();
    assert_eq!(more["ids"].as_array().unwrap().len(), 20);
}

#[test]
fn prompt_tells_what_a_cut_picture_costs() {
    // 1 bit a pixel, 1084x820: nothing but the header is looked at.
    let mut png = fs::read(tiny("sample_hello.png")).unwrap();
    png[16..20].copy_from_slice(&1084_u32.to_be_bytes());
    png[20..24].copy_from_slice(&820_u32.to_be_bytes());
    let crc = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&crc.to_be_bytes());
    let file = messages("prompt", &["wide.png"], "What is in the image?");
    fs::write(file.with_file_name("wide.png"), png).unwrap();

    let out = Program::new("prompt").option("--messages", &file).json();
    let image = &out["images"][0];
    assert_eq!(image["size"], json!([1084, 820]));
    assert_eq!(image["grid"], json!([2, 3]));
    assert_eq!(image["pads"], 441);
    let mut sizes = vec![json!([28, 36])];
    sizes.extend(vec![json!([36, 28]); 6]);
    assert_eq!(image["target_sizes"], json!(sizes));
    let pads = out["ids"].as_array().unwrap().iter().filter(|id| **id == 758).count();
    assert_eq!(pads, 441);
    assert_eq!(out["text"].as_str().unwrap().matches("<|image_pad|>").count(), 1);

    let fine = Program::new("prompt").option("--messages", &file).args("--downsample 4x").json();
    assert_eq!(fine["images"][0]["pads"], 1782);
    let whole = Program::new("prompt").option("--messages", &file).args("--max-slices 1").json();
    assert_eq!(whole["images"][0]["grid"], Value::Null);
}

/// The checksum of a PNG chunk.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

#[test]
fn prompt_reads_requests_with_tools_and_thinking() {
    // The bundled template knows neither: its tokenizer with the template of a larger sister does.
    let folder = folder("request");
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"] {
        fs::copy(tiny(name), folder.join(name)).unwrap();
    }
    let template = repository("vlm-pipeline/tests/data/qwen3.5-chat-template.jinja");
    fs::copy(template, folder.join("chat_template.jinja")).unwrap();
    let file = folder.join("request.json");
    let tool = json!({"type": "function", "function": {"name": "look_up", "parameters": {}}});
    let request = json!({"messages": [{"role": "user", "content": "What is 3 + 4?"}], "tools": [tool]});
    fs::write(&file, request.to_string()).unwrap();
    let prompt = || Program::new("prompt").option("--model", &folder).option("--messages", &file);
    let off = prompt().args("--thinking off").json();
    let text = off["text"].as_str().unwrap();
    assert!(
        text.ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\n") && text.contains("look_up"),
        "{text}"
    );
    let on = prompt().args("--thinking on").json();
    assert!(on["text"].as_str().unwrap().ends_with("<|im_start|>assistant\n<think>\n"));
    let tokens = off["ids"].as_array().unwrap().len();
    assert!(prompt().succeed().ends_with(&format!("\n{tokens} tokens\n")));
}

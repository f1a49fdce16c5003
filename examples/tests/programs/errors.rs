//! Wrong input: one clear line, the right status, no panic.

use std::fs;

use crate::program::{Program, folder, repository, tiny};

fn describe(arguments: &str) -> Program {
    Program::new("describe").args(arguments)
}

#[test]
fn devices_that_are_not_there() {
    describe("--device gpu").fail(2, &["--device", "expected cpu, cuda, cuda:N or auto"]);
    describe("--device cuda:x").fail(2, &["--device"]);
    // On a machine with such a GPU and a build for it this is no error.
    describe("--device cuda:4000").fail(1, &["cuda:4000"]);
    describe("--threads 0").fail(2, &["--threads"]);
    describe("--precision q4").fail(2, &["--precision", "q8", "f32"]);
    describe("--downsample 8x").fail(2, &["--downsample", "16x", "4x"]);
}

#[test]
fn models_that_are_not_there() {
    for name in ["describe", "chat"] {
        Program::new(name).args("--model nowhere").fail(1, &["nowhere", "No such file"]);
    }
    Program::new("generate").args("--model nowhere --ids 1").fail(1, &["nowhere", "No such file"]);
    Program::new("export").args("--model nowhere --out nowhere-q8").fail(1, &["nowhere", "No such file"]);
    let folder = folder("damaged");
    fs::write(folder.join("config.json"), "{").unwrap();
    Program::new("describe").option("--model", &folder).fail(1, &["config.json", "JSON"]);
    fs::copy(tiny("config.json"), folder.join("config.json")).unwrap();
    Program::new("generate").option("--model", &folder).args("--ids 1").fail(1, &["model.safetensors"]);
    fs::write(folder.join("model.safetensors"), "not tensors").unwrap();
    Program::new("generate")
        .option("--model", &folder)
        .args("--ids 1")
        .fail(1, &["not a valid safetensors file"]);
}

#[test]
fn pictures_that_are_none() {
    let text = repository("CONTRIBUTING.md");
    let out = folder("pictures").join("out.safetensors");
    describe("nowhere.png What?").fail(1, &["nowhere.png", "No such file"]);
    Program::new("describe").arg(&text).arg("What?").fail(1, &["CONTRIBUTING.md", "not a PNG"]);
    for name in ["trace", "embed_image"] {
        let program = Program::new(name).option("--out", &out);
        let program = if name == "trace" { program.arg("--image") } else { program };
        program.arg(&text).fail(1, &["CONTRIBUTING.md", "not a PNG"]);
    }
    assert!(!out.exists());
    Program::new("chat").input("/image nowhere.png\n").fail(1, &["nowhere.png"]);
    Program::new("chat").input("/imagine\n").fail(1, &["/imagine", "/image FILE"]);
}

#[test]
fn ids_that_do_not_fit() {
    let generate = |arguments: &str| Program::new("generate").args(arguments);
    generate("").fail(2, &["--ids"]);
    generate("--ids 1,x").fail(2, &["--ids", "x"]);
    generate("--ids 1,-2").fail(2, &["--ids"]);
    generate("--ids 768").fail(1, &["768"]);
    let image = tiny("sample_hello.png");
    generate("--ids 1,758").option("--image", &image).fail(1, &["1 image tokens", "64 embeddings"]);
    generate("--ids 1")
        .args("--step-logits nowhere/logits.safetensors")
        .fail(1, &["nowhere/logits.safetensors"]);
}

#[test]
fn prompts_that_do_not_fit() {
    describe("--context-length 20").fail(1, &["88 tokens", "context of 20"]);
    let ids = vec!["1"; 30].join(",");
    let program = Program::new("generate").option("--ids", ids).args("--context-length 20");
    program.fail(1, &["30 tokens", "context of 20"]);
    describe("--temperature -1").fail(1, &["temperature is -1"]);
    describe("--context-length 0").fail(1, &["context_length is 0"]);
}

#[test]
fn conversations_that_are_wrong() {
    let folder = folder("conversations");
    let prompt = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        Program::new("prompt").option("--messages", file)
    };
    Program::new("prompt").args("--messages nowhere.json").fail(1, &["nowhere.json", "No such file"]);
    prompt("text.json", "hello").fail(1, &["text.json", "messages"]);
    prompt("role.json", r#"[{"role": "king", "content": "x"}]"#).fail(1, &["king"]);
    let image = |url: &str| {
        format!(
            r#"[{{"role": "user", "content": [{{"type": "image_url", "image_url": {{"url": "{url}"}}}}]}}]"#
        )
    };
    prompt("image.json", &image("nowhere.png")).fail(1, &["nowhere.png", "No such file"]);
    prompt("fetch.json", &image("https://example.com/a.png")).fail(1, &["example.com", "nothing is fetched"]);
}

#[test]
fn scans_that_are_wrong() {
    let input = repository("gdn-scan/tests/data/scan.safetensors");
    let out = folder("scans").join("out.safetensors");
    let scan = |case: &str| Program::new("scan").option("--case", case).option("--out", &out);
    scan("one")
        .args("--mode step --input nowhere.safetensors")
        .fail(1, &["nowhere.safetensors", "no such file"]);
    scan("one").args("--mode step").option("--input", &input).fail(1, &["no tensor one.q"]);
    scan("one").args("--mode fast").option("--input", &input).fail(2, &["--mode", "chunked"]);
}

#[test]
fn configs_that_make_no_checkpoint() {
    let folder = folder("configs");
    let (config, out) = (folder.join("config.json"), folder.join("out"));
    let make = || Program::new("make_checkpoint").option("--config", &config).option("--out", &out);
    make().fail(1, &["config.json", "No such file"]);
    fs::write(&config, "{}").unwrap();
    make().fail(1, &["config.json"]);
    fs::write(&config, "[").unwrap();
    make().fail(1, &["not JSON"]);
    make().args("--shards 0").fail(2, &["--shards"]);
    assert!(!out.exists());
}

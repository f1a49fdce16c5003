//! Programs that write checkpoints: make_checkpoint, export.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::SafeTensors;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::program::{Program, folder, repository, tiny};

/// As `reference/checkpoint_sums.py` computes it.
fn checksum(folder: &Path) -> String {
    let mut tensors = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            let bytes = fs::read(&path).unwrap();
            for (name, view) in SafeTensors::deserialize(&bytes).unwrap().iter() {
                let shape: Vec<String> = view.shape().iter().map(ToString::to_string).collect();
                let head = format!("{name} {:?} [{}]\n", view.dtype(), shape.join(", "));
                tensors.insert(name.to_owned(), (head, view.data().to_vec()));
            }
        }
    }
    let mut hash = Sha256::new();
    for (head, values) in tensors.into_values() {
        hash.update(head);
        hash.update(values);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn made_checkpoints_are_those_of_the_python_twin() {
    let sums: Vec<Value> = serde_json::from_str(include_str!("../data/make_checkpoint.json")).unwrap();
    for case in sums {
        let name = case["config"].as_str().unwrap();
        let out = folder(&format!("make_{name}"));
        let dtype = match case["dtype"].as_str().unwrap() {
            "bfloat16" => "bf16",
            "float16" => "f16",
            _ => "f32",
        };
        let program = Program::new("make_checkpoint")
            .option("--config", repository(&format!("reference/configs/{name}.json")))
            .option("--out", &out)
            .option("--seed", case["seed"].to_string())
            .option("--shards", case["shards"].to_string())
            .option("--dtype", dtype);
        let program = if case["mtp"] == true { program.arg("--mtp") } else { program };
        program.succeed();
        assert_eq!(checksum(&out), case["sha256"].as_str().unwrap(), "{name}");
        let shards = fs::read_dir(&out).unwrap().filter(|entry| {
            entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "safetensors")
        });
        assert_eq!(shards.count() as u64, case["shards"].as_u64().unwrap());
    }
}

#[test]
fn a_made_checkpoint_runs_without_a_tokenizer() {
    let out = folder("made");
    let config = repository("reference/configs/base.json");
    let make = || Program::new("make_checkpoint").option("--config", &config).option("--out", &out);
    make().succeed();
    let picture = tiny("sample_red_circle.png");
    let pads = vec!["248"; 64].join(",");
    let generate = || {
        Program::new("generate")
            .option("--model", &out)
            .args("--ignore-eos --max-new-tokens 5 --precision f32")
    };
    let text = generate().args("--ids 1,2,3").json();
    assert_eq!(text["ids"].as_array().unwrap().len(), 5);
    let seen = generate().option("--ids", format!("1,{pads},3")).option("--image", &picture).json();
    assert_eq!(seen["prompt_tokens"], 66);
    let trace = out.join("trace.safetensors");
    Program::new("trace")
        .option("--model", &out)
        .option("--image", &picture)
        .option("--out", &trace)
        .succeed();
    assert!(trace.exists());

    Program::new("describe").option("--model", &out).fail(1, &["no tokenizer.json"]);
    make().fail(1, &["not empty", "--force"]);
    make().arg("--force").args("--seed 1").succeed();
    assert_ne!(generate().args("--ids 1,2,3").json()["ids"], text["ids"]);
}

/// Bytes of the tensors in a folder's only weights file.
fn weight_bytes(folder: &Path) -> usize {
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    SafeTensors::deserialize(&bytes).unwrap().iter().map(|(_, view)| view.data().len()).sum()
}

#[test]
fn an_exported_checkpoint_is_small_and_answers_alike() {
    let out = folder("export").join("q8");
    let export = || Program::new("export").option("--out", &out);
    export().succeed();
    assert_eq!(Program::new("describe").option("--model", &out).succeed(), "a red circle\n");
    let f32 = Program::new("describe").option("--model", &out).args("--precision f32").succeed();
    assert_eq!(f32, "a red circle\n");

    // Of two bytes a value, a projection's become one, and four more for every group of at most 64 inputs.
    let config = qwen3_hybrid::Config::open(tiny("")).unwrap();
    let saved: usize = config
        .tensors()
        .iter()
        .filter(|tensor| tensor.kind == qwen3_hybrid::TensorKind::Projection)
        .map(|tensor| (tensor.shape[0], tensor.shape[1]))
        .map(|(rows, columns)| rows * columns - 4 * rows * columns.div_ceil(64))
        .sum();
    assert_eq!(weight_bytes(&tiny("")) - weight_bytes(&out), saved);

    let config: Value = serde_json::from_slice(&fs::read(out.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["quantization_config"]["bits"], 8);
    for name in
        ["tokenizer.json", "chat_template.jinja", "generation_config.json", "preprocessor_config.json"]
    {
        assert_eq!(fs::read(out.join(name)).unwrap(), fs::read(tiny(name)).unwrap(), "{name}");
    }
    let names: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_str().unwrap().contains("partial")), "{names:?}");

    export().fail(1, &["not empty", "--force"]);
    export().arg("--force").succeed();
    Program::new("export")
        .option("--model", &out)
        .option("--out", out.with_file_name("again"))
        .fail(1, &["quantized already"]);
    assert!(!out.with_file_name("again").exists());
    assert_eq!(Program::new("describe").option("--model", &out).succeed(), "a red circle\n");
}

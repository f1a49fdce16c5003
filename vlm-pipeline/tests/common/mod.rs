//! Golden files and the tiny checkpoint.
#![allow(dead_code, reason = "each test file uses a part of these")]

use std::path::PathBuf;

use serde_json::Value;
use vlm_pipeline::{Image, ImageSource, Request};

/// The trained checkpoint of the repository.
pub(crate) fn tiny() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/assets/tiny"))
}

/// A file of this crate's golden data.
pub(crate) fn data(name: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The records of a golden file.
pub(crate) fn records(name: &str) -> Vec<Value> {
    serde_json::from_str(&data(name)).unwrap()
}

/// One of the golden pictures.
pub(crate) fn picture(name: &str) -> Image {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pictures"));
    Image::open(folder.join(name).with_extension("png")).unwrap()
}

/// Token ids of a JSON array.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

/// Token ids of a JSON array of runs `[id, times]`.
pub(crate) fn runs(value: &Value) -> Vec<u32> {
    let runs = value.as_array().unwrap().iter().map(ids);
    runs.flat_map(|run| std::iter::repeat_n(run[0], run[1] as usize)).collect()
}

/// One prompt with the reference's answer.
#[derive(Debug)]
pub(crate) struct Golden {
    pub(crate) name: String,
    pub(crate) request: Request,
    pub(crate) images: Vec<Image>,
    pub(crate) prompt_tokens: usize,
    prompt: Result<Vec<u32>, String>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) margins: Vec<f64>,
    pub(crate) answer: String,
}

impl Golden {
    /// Compares a prompt's ids with the reference's, or their hash where the reference keeps only that.
    pub(crate) fn check_prompt(&self, ids: &[u32]) {
        assert_eq!(ids.len(), self.prompt_tokens, "{}", self.name);
        match &self.prompt {
            Ok(expected) => assert_eq!(ids, expected, "{}", self.name),
            Err(hash) => assert_eq!(fnv(ids), *hash, "{}", self.name),
        }
    }
}

/// FNV-1a, 64 bits, over the ids as four little-endian bytes each.
fn fnv(ids: &[u32]) -> String {
    let bytes = ids.iter().flat_map(|id| id.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// All prompts of `end_to_end.json`.
pub(crate) fn goldens() -> Vec<Golden> {
    let file: Value = serde_json::from_str(&data("end_to_end.json")).unwrap();
    let filler: Vec<&str> =
        file["filler"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    file["records"].as_array().unwrap().iter().map(|record| golden(record, &filler)).collect()
}

fn golden(record: &Value, filler: &[&str]) -> Golden {
    let mut record = record.clone();
    if let Some(document) = record.get("document") {
        let at = document["at"].as_u64().unwrap() as usize;
        let sentences = document["sentences"].as_u64().unwrap() as usize;
        let mut parts: Vec<&str> = (0..sentences).map(|i| filler[i % filler.len()]).collect();
        parts.insert(at, document["needle"].as_str().unwrap());
        let text = parts.join(" ");
        let content = &mut record["messages"][0]["content"];
        *content = content.as_str().unwrap().replace("{document}", &text).into();
    }
    let request: Request = serde_json::from_value(record.clone()).unwrap();
    let images = request.image_sources().map(|source| match source {
        ImageSource::Reference(name) => picture(name),
        ImageSource::Supplied => panic!("a golden picture has a name"),
    });
    let images = images.collect();
    let prompt = match record["prompt_hash"].as_str() {
        Some(hash) => Err(hash.to_owned()),
        None => Ok(runs(&record["prompt"])),
    };
    Golden {
        name: record["name"].as_str().unwrap().to_owned(),
        images,
        prompt_tokens: record["prompt_tokens"].as_u64().unwrap() as usize,
        prompt,
        tokens: ids(&record["tokens"]),
        margins: record["margins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|margin| margin.as_f64().unwrap())
            .collect(),
        answer: record["answer"].as_str().unwrap().to_owned(),
        request,
    }
}

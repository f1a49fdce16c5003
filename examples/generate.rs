//! Token ids in, token ids out: the model without tokenizer and template, for exact comparisons and for checkpoints that
//! have neither.
//!
//! Image tokens among the ids are replaced by the embeddings of the pictures in order; there must be as many as the
//! pictures have (`prompt --json` tells). Greedy. `step_logits` is float32 `[steps, vocabulary]`.
//!
//! ```sh
//! cargo run --release -p examples --example generate -- --model DIR --ids 1,2,3 --max-new-tokens 16 --json
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use examples::{DeviceOptions, ModelOptions, Program, TensorFile, print, print_json};
use serde_json::json;
use vlm_pipeline::{GenerateOptions, Image, Options, VlmBackend};

/// Continues token ids.
#[derive(Parser)]
struct Args {
    /// The prompt's ids
    #[arg(long, value_name = "ID,ID,...", value_delimiter = ',', required = true)]
    ids: Vec<u32>,
    /// A picture whose embeddings take the place of image tokens; may be given several times
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// The most tokens to generate
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_new_tokens: usize,
    /// Go on after stop tokens
    #[arg(long)]
    ignore_eos: bool,
    /// Write the logits of every step to this safetensors file
    #[arg(long, value_name = "FILE")]
    step_logits: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The most slices that a picture is cut into [default: the checkpoint's]
    #[arg(long, value_name = "N")]
    max_slices: Option<u32>,
    /// Room for prompt and answer, in tokens
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    context_length: usize,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    device: DeviceOptions,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| args.device.run(args))
}

impl Program for Args {
    fn run<B: VlmBackend>(self, device: &B) -> Result<()> {
        let images = self.image.iter().map(Image::open).collect::<Result<Vec<_>, _>>()?;
        let options = Options {
            context_length: self.context_length,
            max_slices: self.max_slices,
            keep_prefix: false,
            ..Options::default()
        };
        let mut vlm = self.model.load(device, options)?;
        let begun = Instant::now();
        let images = images.iter().map(|image| vlm.encode(image)).collect::<Result<Vec<_>, _>>()?;
        let encode_seconds = begun.elapsed().as_secs_f64();

        let options = GenerateOptions {
            max_new_tokens: Some(self.max_new_tokens),
            ignore_eos: self.ignore_eos,
            ..GenerateOptions::default()
        };
        let mut session = vlm.session();
        let vocabulary = vlm.backbone().config().vocab_size;
        let (mut ids, mut logits) = (Vec::new(), Vec::new());
        let mut generation = vlm.generate(&mut session, &self.ids, &images, &options)?;
        while let Some(id) = generation.next() {
            ids.push(id?);
            if self.step_logits.is_some() {
                logits.extend(generation.logits()?);
            }
        }
        let timings = generation.timings();

        if let Some(path) = &self.step_logits {
            let mut file = TensorFile::default();
            file.add("step_logits", &[logits.len() / vocabulary, vocabulary], logits);
            file.save(path)?;
        }
        if !self.json {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            return print(ids.join(","));
        }
        print_json(&json!({
            "ids": ids,
            "prompt_tokens": timings.prompt_tokens,
            "encode_seconds": encode_seconds,
            "prefill_seconds": timings.prefill.as_secs_f64(),
            "decode_seconds": timings.decode.as_secs_f64(),
        }))
    }
}

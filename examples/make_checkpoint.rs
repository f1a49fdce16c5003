//! Makes a random checkpoint of any config in Hugging Face layout, with sane scales: for tests and timings at full size.
//!
//! The values are those of `reference/synthetic.py --out`, bit for bit. There is no tokenizer: `generate`, `trace` and
//! `embed_image` run without one.
//!
//! ```sh
//! cargo run --release -p examples --example make_checkpoint -- --out target/full
//! cargo run --release -p examples --example make_checkpoint -- --out target/small --config reference/configs/base.json --seed 7
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use examples::{Bar, StagedFolder, print};
use fermi_blas::synthetic::{Distribution, Sequence};
use fermi_blas::{CheckpointWriter, Dtype, Sharding, TensorSpec};
use serde_json::{Value, json};

/// Values that are made at a time.
const PIECE: usize = 1 << 22;

/// Makes a random checkpoint.
#[derive(Parser)]
struct Args {
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace a checkpoint that is there
    #[arg(long)]
    force: bool,
    /// The config.json to follow [default: the full model's]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The same seed makes the same values
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The values' type [default: the config's, or bf16]
    #[arg(long, value_enum)]
    dtype: Option<Type>,
    /// Files to deal the tensors to
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=999))]
    shards: u16,
    /// Add tensors of a multi-token-prediction head, which readers pass over
    #[arg(long)]
    mtp: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Type {
    Bf16,
    F32,
    F16,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| make(&args))
}

fn make(args: &Args) -> Result<()> {
    let text = match &args.config {
        Some(path) => {
            fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?
        }
        None => include_str!("assets/full-config.json").to_owned(),
    };
    let config: Value = serde_json::from_str(&text).context("the config is not JSON")?;
    let tensors = tensors(&config, &text, args.mtp)?;
    let dtype = dtype(args.dtype, &config)?;

    let out = StagedFolder::new(&args.out, args.force)?;
    out.write("config.json", &text)?;
    out.write("generation_config.json", generation_config(args.config.is_none(), &config))?;
    if config.get("vision_config").is_some() {
        out.write("preprocessor_config.json", include_str!("assets/full-preprocessor_config.json"))?;
    }
    let specs = tensors.iter().map(|(name, shape)| TensorSpec::new(name, dtype, shape));
    let sharding =
        Sharding { max_tensors: tensors.len().div_ceil(args.shards.into()), ..Sharding::default() };
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    let mut writer = CheckpointWriter::create(out.path(), specs, &metadata, sharding)?;

    let bar = Bar::new("making");
    let all: usize = tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
    let bytes = dtype.bitsize() / 8;
    let (mut values, mut done) = (Vec::new(), 0);
    for (name, shape) in &tensors {
        let (sequence, distribution) = (Sequence::new(name, args.seed), Distribution::of_weight(name, shape));
        let count = shape.iter().product();
        for start in (0..count).step_by(PIECE) {
            values.resize(PIECE.min(count - start), 0.0);
            sequence.fill(distribution, start, &mut values);
            writer.append(name, &values)?;
            done += values.len();
            bar.set((done * bytes) as u64, (all * bytes) as u64);
        }
    }
    writer.finish()?;
    out.commit()?;
    print(format_args!("{}: {} tensors, {all} values", args.out.display(), tensors.len()))
}

/// Name and shape of everything that the config's model reads.
fn tensors(config: &Value, text: &str, mtp: bool) -> Result<Vec<(String, Vec<usize>)>> {
    let backbone = qwen3_hybrid::Config::from_json(text.as_bytes())?;
    let mut tensors = match config.get("vision_config") {
        Some(_) => siglip2_tower::Config::from_json(text.as_bytes())?.tensors(),
        None => Vec::new(),
    };
    tensors.extend(backbone.tensors().into_iter().map(|tensor| (tensor.name, tensor.shape)));
    if mtp {
        let width = backbone.hidden_size;
        tensors.push(("mtp.fc.weight".to_owned(), vec![width, 2 * width]));
        tensors.push(("mtp.layers.0.input_layernorm.weight".to_owned(), vec![width]));
        tensors.push(("mtp.norm.weight".to_owned(), vec![width]));
    }
    Ok(tensors)
}

fn dtype(asked: Option<Type>, config: &Value) -> Result<Dtype> {
    let of_config = config.get("dtype").and_then(Value::as_str).unwrap_or("bfloat16");
    Ok(match (asked, of_config) {
        (Some(Type::Bf16), _) | (None, "bfloat16") => Dtype::BF16,
        (Some(Type::F32), _) | (None, "float32") => Dtype::F32,
        (Some(Type::F16), _) | (None, "float16") => Dtype::F16,
        (None, other) => bail!("the config's dtype {other} is not known here: choose a --dtype"),
    })
}

/// The full model's, or what another config says of its end tokens.
fn generation_config(full: bool, config: &Value) -> String {
    if full {
        return include_str!("assets/full-generation_config.json").to_owned();
    }
    let of_text = config.get("text_config").and_then(|text| text.get("eos_token_id"));
    let end = config.get("eos_token_id").or(of_text).cloned().unwrap_or_default();
    format!("{:#}\n", json!({ "do_sample": false, "eos_token_id": end }))
}

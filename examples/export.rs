//! Writes a checkpoint again with the backbone in 8 bits: a quarter of float32's memory, and no rounding when it loads.
//!
//! Embedding, head and projections become int8 with one float32 scale a group of 64 inputs (NAME and NAME.scale); everything
//! else keeps its type, and the small files come along. Every example takes either kind.
//!
//! ```sh
//! cargo run --release -p examples --example export -- --model DIR --out DIR-q8
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use examples::{Bar, StagedFolder, bundled, is_weights, print};
use fermi_blas::{Checkpoint, CheckpointWriter, Dtype, Q8_FORMAT_VERSION, Q8_GROUP, Sharding, TensorSpec};
use qwen3_hybrid::TensorKind;
use serde_json::{Value, json};

/// Exports a checkpoint to 8 bits.
#[derive(Parser)]
struct Args {
    /// Folder of the checkpoint [default: the small one that comes along]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace a checkpoint that is there
    #[arg(long)]
    force: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| export(&args))
}

fn export(args: &Args) -> Result<()> {
    let folder = args.model.clone().map_or_else(|| bundled("tiny"), Ok)?;
    let mut config = read_config(&folder)?;
    ensure!(config.get("quantization_config").is_none(), "{}: is quantized already", folder.display());
    let bar = Bar::new("exporting");
    let checkpoint = Checkpoint::open(&folder)?.with_progress(Box::new(bar.callback()));
    let (quantized, kept) = tensors(&folder, &config, &checkpoint)?;
    let same =
        fs::canonicalize(&args.out).is_ok_and(|out| fs::canonicalize(&folder).is_ok_and(|own| own == out));
    ensure!(!same, "{}: is the checkpoint that is read", args.out.display());

    let out = StagedFolder::new(&args.out, args.force)?;
    copy_small_files(&folder, &out)?;
    config["quantization_config"] = json!({
        "quant_method": "fermi_blas_q8",
        "format_version": Q8_FORMAT_VERSION,
        "bits": 8,
        "group_size": Q8_GROUP,
        "symmetric": true,
    });
    out.write("config.json", format!("{config:#}\n"))?;

    let specs = quantized.iter().flat_map(|(name, shape)| TensorSpec::q8(name, *shape));
    let specs = specs.chain(kept.iter().cloned());
    let mut writer = CheckpointWriter::create(out.path(), specs, &BTreeMap::new(), Sharding::default())?;
    for (name, shape) in &quantized {
        checkpoint.read_rows(name, shape, |_, values| writer.append(name, values))?;
    }
    for TensorSpec { name, shape, .. } in &kept {
        checkpoint.read_rows(name, shape, |_, values| writer.append(name, values))?;
    }
    writer.finish()?;
    out.commit()?;
    drop(bar);
    let left_out = checkpoint.unused().len();
    print(format_args!(
        "{}: {} tensors in 8 bits, {} as they were, {left_out} that the model does not read left out",
        args.out.display(),
        quantized.len(),
        kept.len()
    ))
}

fn read_config(folder: &Path) -> Result<Value> {
    let path = folder.join("config.json");
    let text = fs::read(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{}: not JSON", path.display()))
}

/// The matrices to be quantized, by name and shape, and what is kept as it is.
#[expect(clippy::type_complexity, reason = "two lists of different things")]
fn tensors(
    folder: &Path,
    config: &Value,
    checkpoint: &Checkpoint,
) -> Result<(Vec<(String, [usize; 2])>, Vec<TensorSpec>)> {
    let (mut quantized, mut names) = (Vec::new(), BTreeSet::new());
    for tensor in qwen3_hybrid::Config::open(folder)?.tensors() {
        match (tensor.kind, tensor.shape.as_slice()) {
            (TensorKind::Projection, &[rows, columns]) => quantized.push((tensor.name, [rows, columns])),
            _ => drop(names.insert(tensor.name)),
        }
    }
    if config.get("vision_config").is_some() {
        names.extend(siglip2_tower::Config::read(folder)?.tensors().into_iter().map(|(name, _)| name));
    }
    let keep = |name: String| {
        let info =
            checkpoint.info(&name).with_context(|| format!("{}: has no tensor {name}", folder.display()))?;
        ensure!(info.dtype != Dtype::I8, "{}: {name} is in 8 bits already", folder.display());
        Ok(TensorSpec::new(&name, info.dtype, &info.shape))
    };
    let kept = names.into_iter().map(keep).collect::<Result<_>>()?;
    Ok((quantized, kept))
}

/// Tokenizer, template, settings and the like: every file beside the weights and the config.
fn copy_small_files(folder: &Path, out: &StagedFolder) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("{}: cannot be read", folder.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name().filter(|_| path.is_file() && !is_weights(&path)) else { continue };
        if name != "config.json" {
            let copied = fs::copy(&path, out.path().join(name));
            copied.with_context(|| format!("{}: cannot be copied", path.display()))?;
        }
    }
    Ok(())
}

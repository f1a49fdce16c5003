//! What a conversation costs, without running it: its prompt's text and ids, and what each picture becomes.
//!
//! Reads the tokenizer, the chat template and the pictures' headers; neither weights nor pixels. FILE.json is an array of
//! OpenAI-style messages, or a request object with `messages` and `tools`; image parts name files, which count from
//! the current folder or else from the one that FILE.json is in.
//!
//! ```sh
//! cargo run --release -p examples --example prompt -- --messages conversation.json --json
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use examples::{ModelOptions, Switch, print, print_json};
use serde_json::{Value, json};
use vlm_pipeline::{Image, ImageSource, Limits, Plan, PromptBuilder, RenderOptions, Request};

/// Tells what a conversation costs.
#[derive(Parser)]
struct Args {
    /// The conversation
    #[arg(long, value_name = "FILE.json")]
    messages: PathBuf,
    /// Whether the model is to think
    #[arg(long, value_enum, default_value = "off")]
    thinking: Switch,
    /// The most slices that a picture is cut into [default: the checkpoint's]
    #[arg(long, value_name = "N")]
    max_slices: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    model: ModelOptions,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| prompt(&args))
}

fn prompt(args: &Args) -> Result<()> {
    let path = &args.messages;
    let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let request = Request::from_json(&text).with_context(|| path.display().to_string())?;

    let folder = args.model.folder()?;
    let mut settings = examples::image_settings(&folder, args.model.downsample_mode())?;
    settings.max_slice_nums = args.max_slices.unwrap_or(settings.max_slice_nums);
    let mut plans = Vec::new();
    for source in request.image_sources() {
        let (width, height) = size(source, path)?;
        plans.push(Plan::new(width, height, &settings)?);
    }
    let render = RenderOptions { thinking: args.thinking.into(), ..RenderOptions::default() };
    let prompt = PromptBuilder::load(&folder)?.build(&request, &plans, &render)?;

    if args.json {
        let images: Vec<Value> = plans.iter().map(image).collect();
        return print_json(&json!({ "text": prompt.text, "ids": prompt.ids, "images": images }));
    }
    print(&prompt.text)?;
    print(format_args!("\n{} tokens", prompt.ids.len()))?;
    for (index, plan) in plans.iter().enumerate() {
        let (width, height) = (plan.size.width, plan.size.height);
        let grid = plan.grid.map_or(String::new(), |grid| format!(", {} x {} slices", grid.rows, grid.cols));
        print(format_args!("picture {index}: {width} x {height}{grid}, {} pads", plan.total_pads()))?;
    }
    Ok(())
}

/// Width x height, rows x columns of slices (null when not cut), and per part the grid of patches and the pads.
fn image(plan: &Plan) -> Value {
    json!({
        "size": [plan.size.width, plan.size.height],
        "grid": plan.grid.map(|grid| [grid.rows, grid.cols]),
        "target_sizes": plan.target_sizes(),
        "pads": plan.total_pads(),
        "pads_by_part": plan.pads(),
    })
}

/// A picture's width and height from its header; pictures within a message are decoded.
fn size(source: &ImageSource, messages: &Path) -> Result<(u32, u32)> {
    let ImageSource::Reference(name) = source else {
        bail!("{}: an image part names no file", messages.display());
    };
    if name.starts_with("data:") {
        let image = Image::from_base64(name)?;
        return Ok((image.width(), image.height()));
    }
    if name.starts_with("http:") || name.starts_with("https:") {
        bail!("{name}: pictures are read from files, nothing is fetched");
    }
    let path = Path::new(name.strip_prefix("file://").unwrap_or(name));
    let beside = messages.with_file_name("").join(path);
    let path = if !path.exists() && beside.exists() { &beside } else { path };
    Ok(Image::size_of_file(path, &Limits::default())?)
}

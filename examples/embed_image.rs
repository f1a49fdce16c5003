//! The vision tower alone: a picture's embeddings, the vectors that take the place of its tokens in a prompt.
//!
//! The file holds `embeddings` `[tokens, language width]`, those of the overview and then of each slice row by row, and
//! `target_sizes` `[slices, 2]` (rows and columns of patches).
//!
//! ```sh
//! cargo run --release -p examples --example embed_image -- picture.jpg --out embeddings.safetensors
//! ```

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use examples::{DeviceOptions, ModelOptions, Program, TensorFile, print, print_json};
use serde_json::json;
use vlm_pipeline::{Image, VlmBackend, preprocess};

/// Writes a picture's embeddings.
#[derive(Parser)]
struct Args {
    /// The picture
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The most slices that the picture is cut into [default: the checkpoint's]
    #[arg(long, value_name = "N")]
    max_slices: Option<u32>,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
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
        let mut settings = examples::image_settings(&self.model.folder()?, self.model.downsample_mode())?;
        settings.max_slice_nums = self.max_slices.unwrap_or(settings.max_slice_nums);
        let picture = preprocess(&Image::open(&self.image)?, &settings)?;
        let mut tower = examples::load_tower(device, &self.model, &picture)?;

        let begun = Instant::now();
        let embeddings = tower.encode(&examples::read_slices(&picture))?;
        let values = embeddings.to_vec(device)?;
        let seconds = begun.elapsed().as_secs_f64();

        let shape = [embeddings.rows(), embeddings.columns()];
        let squares: f64 = values.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let rms = (squares / values.len() as f64).sqrt();
        let mut file = TensorFile::default();
        file.add("embeddings", &shape, values);
        let (sizes_shape, sizes) = examples::target_sizes(&picture);
        file.add_i32("target_sizes", &sizes_shape, sizes);
        file.save(&self.out)?;

        let plan = picture.plan;
        let (width, height) = (plan.size.width, plan.size.height);
        if self.json {
            return print_json(&json!({
                "size": [width, height],
                "grid": plan.grid.map(|grid| [grid.rows, grid.cols]),
                "pads": plan.pads(),
                "shape": shape,
                "rms": rms,
                "seconds": seconds,
            }));
        }
        let cut = plan
            .grid
            .map_or("whole".to_owned(), |grid| format!("overview and {} x {} slices", grid.rows, grid.cols));
        print(format_args!("picture     {width} x {height}, {cut}"))?;
        print(format_args!("embeddings  {} x {}, rms {rms:.4}", shape[0], shape[1]))?;
        print(format_args!("time        {seconds:.3} s"))
    }
}

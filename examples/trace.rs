//! Every stage of the vision tower on one picture, as safetensors under the reference's names.
//!
//! The file holds `pixel_values` `[3, 14, n*14]` and `target_sizes` `[slices, 2]` (rows and columns of patches), then
//! `embeddings`, `encoder.layers.K`, `vit_merger`, `post_layernorm` and `merger`, each `[rows, width]` with the slices one
//! after another. `reference/compare.py` holds it against transformers.
//!
//! ```sh
//! cargo run --release -p examples --example trace -- --image picture.jpg --out trace.safetensors
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use examples::{DeviceOptions, ModelOptions, Program, TensorFile};
use fermi_blas::{Matrix, Recorder};
use vlm_pipeline::{Image, VlmBackend, preprocess};

/// Writes every stage of the vision tower.
#[derive(Parser)]
struct Args {
    /// The picture
    #[arg(long, value_name = "FILE")]
    image: PathBuf,
    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
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
        let settings = examples::image_settings(&self.model.folder()?, self.model.downsample_mode())?;
        let picture = preprocess(&Image::open(&self.image)?, &settings)?;
        let slices = examples::read_slices(&picture);
        let mut tower = examples::load_tower(device, &self.model, &picture)?;
        let mut output = Matrix::zeros(device, tower.tokens(&slices)?, tower.width())?;
        let mut recorder = Recorder::new(device);
        tower.forward(&slices, &mut recorder, output.view_mut())?;

        // Slices that do not fit into one pass together come in several: their rows are put one after another.
        let mut stages: BTreeMap<String, (usize, Vec<f32>)> = BTreeMap::new();
        for stage in recorder.stages {
            let (width, values) = stages.entry(stage.name).or_default();
            *width = stage.columns;
            values.extend(stage.values);
        }
        let mut file = TensorFile::default();
        let (channels, side) = (3, picture.plan.patch_size as usize);
        let pixels = picture.concatenated();
        file.add("pixel_values", &[channels, side, pixels.len() / (channels * side)], pixels);
        let (shape, sizes) = examples::target_sizes(&picture);
        file.add_i32("target_sizes", &shape, sizes);
        for (name, (width, values)) in stages {
            file.add(&name, &[values.len() / width, width], values);
        }
        file.save(&self.out)
    }
}

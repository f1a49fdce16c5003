//! Which checkpoint is loaded, and how.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use fermi_blas::Precision;
use vlm_pipeline::{DownsampleMode, Options, Pipeline, VlmBackend};

use crate::Bar;

/// The checkpoint, on the command line.
#[derive(Args, Clone, Debug)]
pub struct ModelOptions {
    /// Folder of a checkpoint, as published or exported to 8 bits [default: the small one that comes along]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// What the backbone's weights are kept as; the tower is float32 always
    #[arg(long, value_enum, default_value = "q8")]
    precision: WeightPrecision,
    /// How many patches of a picture become one token [default: the checkpoint's]
    #[arg(long, value_enum)]
    downsample: Option<Downsample>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum WeightPrecision {
    Q8,
    F32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Downsample {
    #[value(name = "16x")]
    X16,
    #[value(name = "4x")]
    X4,
}

impl ModelOptions {
    /// The checkpoint's folder.
    ///
    /// # Errors
    /// When none is given and the bundled one is nowhere to be found.
    pub fn folder(&self) -> Result<PathBuf> {
        self.model.clone().map_or_else(|| bundled("tiny"), Ok)
    }

    /// The mode asked for.
    pub fn downsample_mode(&self) -> Option<DownsampleMode> {
        self.downsample.map(|mode| match mode {
            Downsample::X16 => DownsampleMode::X16,
            Downsample::X4 => DownsampleMode::X4,
        })
    }

    /// Loads the checkpoint, with a bar.
    ///
    /// # Errors
    /// As [`Pipeline::load`].
    pub fn load<B: VlmBackend>(&self, device: &B, options: Options) -> Result<Pipeline<B>> {
        let bar = Bar::new("loading");
        let options = Options {
            precision: match self.precision {
                WeightPrecision::Q8 => Precision::Q8,
                WeightPrecision::F32 => Precision::F32,
            },
            downsample_mode: self.downsample_mode(),
            progress: Some(Arc::new(bar.callback())),
            ..options
        };
        let folder = self.folder()?;
        // On the device's own threads, so that `--threads` holds while values are converted, too.
        Ok(device.run_pass(|| Pipeline::load(device, &folder, options))?)
    }
}

/// Something in `examples/assets`: where it was when this was built, or beside the program or a folder above it.
///
/// # Errors
/// When it is nowhere to be found.
pub fn bundled(name: &str) -> Result<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(name);
    let program = env::current_exe().unwrap_or_default();
    let above = program
        .ancestors()
        .skip(1)
        .flat_map(|folder| [folder.join("assets").join(name), folder.join("examples/assets").join(name)]);
    std::iter::once(built.clone())
        .chain(above)
        .find(|path| path.exists())
        .with_context(|| format!("{}: not found, nor beside the program: name a --model", built.display()))
}

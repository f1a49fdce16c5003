//! The tower without the rest of the pipeline.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fermi_blas::Checkpoint;
use serde_json::Value;
use siglip2_tower::{Config, Grid, Options, Slice, Tower, WindowBackend};
use vlm_pipeline::{DownsampleMode, Preprocessed, PreprocessorConfig};

use crate::{Bar, ModelOptions};

/// A checkpoint's image settings: the mode is config.json's, unless the command line has one.
///
/// # Errors
/// When a file of the checkpoint is missing or wrong.
pub fn image_settings(folder: &Path, mode: Option<DownsampleMode>) -> Result<PreprocessorConfig> {
    let mut settings = PreprocessorConfig::from_dir(folder)?;
    let of_config = || Ok::<_, anyhow::Error>(Config::read(folder)?.downsample_mode.to_string().parse()?);
    match mode {
        Some(mode) => settings.downsample_mode = mode,
        None if has_vision(folder)? => settings.downsample_mode = of_config()?,
        None => {}
    }
    Ok(settings)
}

/// Loads a checkpoint's tower with room for this picture, with a bar.
///
/// # Errors
/// In a text model; else as [`Tower::load`].
pub fn load_tower<B: WindowBackend>(
    device: &B,
    model: &ModelOptions,
    picture: &Preprocessed,
) -> Result<Tower<B>> {
    let folder = model.folder()?;
    ensure!(has_vision(&folder)?, "{}: config.json has no vision_config", folder.display());
    let config = Config::read(&folder)?;
    let largest = read_slices(picture).iter().map(|slice| slice.grid.patches()).max().unwrap_or_default();
    let options = Options::default();
    let options = Options {
        max_patches: options.max_patches.max(largest),
        downsample_mode: Some(picture.plan.mode.to_string().parse()?),
        ..options
    };
    let bar = Bar::new("loading");
    let checkpoint = Checkpoint::open(&folder)?.with_progress(Box::new(bar.callback()));
    Ok(device.run_pass(|| Tower::load(device, &checkpoint, &config, options))?)
}

/// A picture's slices as the tower reads them.
pub fn read_slices(picture: &Preprocessed) -> Vec<Slice<'_>> {
    let slice = |slice: &'_ vlm_pipeline::Slice| Grid { rows: slice.rows, columns: slice.cols };
    let slices = picture.slices.iter();
    slices.map(|part| Slice { pixel_values: &part.pixel_values, grid: slice(part) }).collect()
}

/// Rows and columns of patches of each slice, and the shape `[slices, 2]`.
pub fn target_sizes(picture: &Preprocessed) -> ([usize; 2], Vec<i32>) {
    let sizes = picture.slices.iter().flat_map(|slice| [slice.rows as i32, slice.cols as i32]);
    ([picture.slices.len(), 2], sizes.collect())
}

fn has_vision(folder: &Path) -> Result<bool> {
    let path = folder.join("config.json");
    let text = std::fs::read(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let json: Value =
        serde_json::from_slice(&text).with_context(|| format!("{}: not JSON", path.display()))?;
    Ok(json.get("vision_config").is_some())
}

//! What config.json says about the tower.

mod keys;
mod mode;
mod tensors;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::path::Path;

use fermi_blas::Activation;
use serde_json::Value;

use crate::{Error, Grid, Result};
use keys::Keys;
pub use mode::DownsampleMode;

/// Sizes beyond these are damage, not models; with them no product of sizes overflows.
const WIDTHS: RangeInclusive<usize> = 1..=1 << 20;
const LAYERS: RangeInclusive<usize> = 1..=1 << 12;
const SIDES: RangeInclusive<usize> = 1..=1 << 14;
const ROUNDS: RangeInclusive<usize> = 1..=8;

/// The keys of config.json that shape the tower, with the reference's defaults for those that a file leaves out.
///
/// # Source
/// `MiniCPMV4_6Config` of transformers 5.24. As there, `insert_layer_id` of the top level counts (not `vision_config`'s),
/// and `drop_vision_last_layer` changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The encoder.
    pub vision_config: VisionConfig,
    /// The layer that the window-attention merger follows, from 0; 6 if left out.
    pub insert_layer_id: usize,
    /// The mode to run in unless the caller asks for another; 16x if left out.
    pub downsample_mode: DownsampleMode,
    /// Rows and columns of vectors that the projector merges into one; 2 x 2 if left out, and always 4 together.
    pub merge_kernel_size: [usize; 2],
    /// Rounds of the projector; 1 if left out.
    pub merger_times: usize,
    /// `text_config.hidden_size`: the width of the output; 4096 if left out.
    pub text_hidden_size: usize,
}

/// `vision_config`: the encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionConfig {
    /// Width of the encoder (768 if left out).
    pub hidden_size: usize,
    /// Width inside its MLP (3072).
    pub intermediate_size: usize,
    /// Layers (12).
    pub num_hidden_layers: usize,
    /// Attention heads (12).
    pub num_attention_heads: usize,
    /// Colour channels (3).
    pub num_channels: usize,
    /// Pixels along a side of the picture whose patches have a position each (224).
    pub image_size: usize,
    /// Pixels along a side of a patch (16).
    pub patch_size: usize,
    /// The MLP's activation (`gelu_pytorch_tanh`).
    pub hidden_act: Activation,
    /// What a layer norm adds to the variance (1e-6).
    pub layer_norm_eps: f32,
}

impl Config {
    /// Reads `config.json` of a checkpoint folder, or the file itself.
    ///
    /// # Errors
    /// [`Error::Io`] and those of [`Config::from_json`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let path = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
        let text = std::fs::read(&path).map_err(|source| Error::Io { path, source })?;
        Self::from_json(&text)
    }

    /// Reads the text of a config.json.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::MissingKey`], [`Error::InvalidKey`], [`Error::Heads`], [`Error::InsertLayer`].
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let value: Value = serde_json::from_slice(text).map_err(|source| Error::Json { source })?;
        let top = Keys::top(&value)?;
        let vision = top.section("vision_config")?;
        let text = top.section("text_config")?;
        let config = Self {
            vision_config: VisionConfig {
                hidden_size: vision.size("vision_config.hidden_size", 768, WIDTHS)?,
                intermediate_size: vision.size("vision_config.intermediate_size", 3072, WIDTHS)?,
                num_hidden_layers: vision.size("vision_config.num_hidden_layers", 12, LAYERS)?,
                num_attention_heads: vision.size("vision_config.num_attention_heads", 12, WIDTHS)?,
                num_channels: vision.size("vision_config.num_channels", 3, 1..=64)?,
                image_size: vision.size("vision_config.image_size", 224, SIDES)?,
                patch_size: vision.size("vision_config.patch_size", 16, 1..=1 << 10)?,
                hidden_act: vision.activation("vision_config.hidden_act")?,
                layer_norm_eps: vision.positive("vision_config.layer_norm_eps", 1e-6)?,
            },
            insert_layer_id: top.size("insert_layer_id", 6, 0..=1 << 12)?,
            downsample_mode: top.mode("downsample_mode")?,
            merge_kernel_size: top.kernel("merge_kernel_size")?,
            merger_times: top.size("merger_times", 1, ROUNDS)?,
            text_hidden_size: text.size("text_config.hidden_size", 4096, WIDTHS)?,
        };
        // The reference halves the grid whatever the window, so it has no other window either.
        if vision.kernel("vision_config.window_kernel_size")? != [2, 2] {
            return Err(vision.invalid("vision_config.window_kernel_size", "[2, 2]"));
        }
        if config.merge_kernel_size.iter().product::<usize>() != 4 {
            return Err(top.invalid("merge_kernel_size", "two sizes whose product is 4"));
        }
        config.check(config.downsample_mode)?;
        Ok(config)
    }

    /// Checks what single keys cannot tell; a config changed by hand is checked again when it is used.
    pub(crate) fn check(&self, mode: DownsampleMode) -> Result<()> {
        let VisionConfig { hidden_size, num_attention_heads, num_hidden_layers, .. } = self.vision_config;
        if hidden_size.checked_rem(num_attention_heads) != Some(0) {
            return Err(Error::Heads { hidden_size, num_attention_heads });
        }
        let side = self.vision_config.image_size.checked_div(self.vision_config.patch_size).unwrap_or(0);
        let sizes = [
            ("vision_config.hidden_size", hidden_size, WIDTHS),
            ("vision_config.intermediate_size", self.vision_config.intermediate_size, WIDTHS),
            ("vision_config.num_hidden_layers", num_hidden_layers, LAYERS),
            ("vision_config.num_channels", self.vision_config.num_channels, 1..=64),
            ("vision_config.patch_size", self.vision_config.patch_size, 1..=1 << 10),
            ("vision_config.image_size / patch_size", side, 1..=1 << 12),
            ("merge_kernel_size", self.merge_kernel_size[0].saturating_mul(self.merge_kernel_size[1]), 4..=4),
            ("merger_times", self.merger_times, ROUNDS),
            ("text_config.hidden_size", self.text_hidden_size, WIDTHS),
        ];
        for (key, size, valid) in sizes {
            if !valid.contains(&size) {
                let expected = keys::describe(&valid);
                return Err(Error::InvalidKey { key, value: size.to_string(), expected });
            }
        }
        let insert_layer_id = self.insert_layer_id;
        if mode == DownsampleMode::X16 && insert_layer_id >= num_hidden_layers {
            return Err(Error::InsertLayer { insert_layer_id, num_hidden_layers });
        }
        Ok(())
    }

    /// What a slice's rows and columns of patches must be divisible by.
    pub fn divisor(&self, mode: DownsampleMode) -> Grid {
        let window = mode.window();
        let [rows, columns] =
            self.merge_kernel_size.map(|size| size.saturating_pow(self.merger_times as u32));
        Grid { rows: window.saturating_mul(rows), columns: window.saturating_mul(columns) }
    }

    /// Output vectors of a slice: its patches / 16 in 16x mode, / 4 in 4x mode, with one round of the projector.
    pub fn tokens(&self, grid: Grid, mode: DownsampleMode) -> usize {
        grid.reduced(self.divisor(mode)).patches()
    }
}

impl VisionConfig {
    /// Width of an attention head.
    pub fn head_dim(&self) -> usize {
        self.hidden_size.checked_div(self.num_attention_heads).unwrap_or(0)
    }

    /// Buckets along one side of the position grid.
    pub fn positions_per_side(&self) -> usize {
        self.image_size.checked_div(self.patch_size).unwrap_or(0)
    }

    /// Pixel values of a patch.
    pub fn patch_values(&self) -> usize {
        self.num_channels * self.patch_size * self.patch_size
    }
}

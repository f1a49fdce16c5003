//! From a picture to what the tower reads: resized, cut, normalised and packed into patches.
//!
//! A byte `x` of channel `c` becomes, in the reference's order of operations and types,
//! `(f32(f64(x) * rescale_factor) - f32(mean_c)) / f32(std_c)`: rescaled in double precision, rounded to float32, the rest in
//! float32. Only 256 bytes exist, so the values are computed once per channel and looked up.
//!
//! A slice of `R` x `C` patches is packed as `[3, 14, R*C*14]`: for each channel and each of a patch's 14 rows, that
//! row of every patch one after the other, patches in raster order.

use crate::error::Result;
use crate::image::Image;
use crate::preprocessor_config::PreprocessorConfig;
use crate::resize::resize_bicubic;
use crate::slicing::{Plan, Size};

/// One part of a picture, ready for the tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Patches from top to bottom.
    pub rows: usize,
    /// Patches from left to right.
    pub cols: usize,
    /// Float32 `[3, P, rows * cols * P]` with `P` the patch size, in the reference's packing.
    pub pixel_values: Vec<f32>,
}

/// A picture, ready for the tower.
#[derive(Debug, Clone, PartialEq)]
pub struct Preprocessed {
    /// The sizes of its parts and their tokens.
    pub plan: Plan,
    /// The overview, then the slices row by row.
    pub slices: Vec<Slice>,
}

impl Preprocessed {
    /// The reference's `pixel_values`: every slice side by side, float32 `[3, P, sum of rows * cols * P]`.
    pub fn concatenated(&self) -> Vec<f32> {
        let mut all = Vec::with_capacity(self.slices.iter().map(|slice| slice.pixel_values.len()).sum());
        let rows = 3 * self.plan.patch_size as usize;
        for row in 0..rows {
            for slice in &self.slices {
                let length = slice.pixel_values.len() / rows;
                all.extend_from_slice(&slice.pixel_values[row * length..][..length]);
            }
        }
        all
    }
}

/// Prepares a picture: its plan, and the pixel values of each part.
///
/// # Shapes
/// Each slice is float32 `[3, P, n * P]` with `n` patches of `P` pixels a side.
///
/// # Errors
/// As [`Plan::new`].
///
/// # Source
/// `MiniCPMV4_6ImageProcessorPil` of transformers 5.24, whose values these equal bit for bit.
pub fn preprocess(image: &Image, config: &PreprocessorConfig) -> Result<Preprocessed> {
    let plan = Plan::new(image.width(), image.height(), config)?;
    let values = normalised(config);
    let overview = resize_bicubic(image, plan.overview.width, plan.overview.height)?;
    let mut slices = vec![pack(&overview, (0, 0), plan.overview, plan.patch_size, &values)];
    if let Some(grid) = plan.grid {
        let refined = resize_bicubic(image, grid.refined().width, grid.refined().height)?;
        for row in 0..grid.rows {
            for col in 0..grid.cols {
                let corner = (col * grid.slice.width, row * grid.slice.height);
                slices.push(pack(&refined, corner, grid.slice, plan.patch_size, &values));
            }
        }
    }
    Ok(Preprocessed { plan, slices })
}

/// What each byte becomes, per channel.
fn normalised(config: &PreprocessorConfig) -> [[f32; 256]; 3] {
    std::array::from_fn(|channel| {
        let (mean, std) = (config.image_mean[channel] as f32, config.image_std[channel] as f32);
        std::array::from_fn(|byte| {
            let factor = if config.do_rescale { config.rescale_factor } else { 1.0 };
            let rescaled = (byte as f64 * factor) as f32;
            if config.do_normalize { (rescaled - mean) / std } else { rescaled }
        })
    })
}

/// Packs the part of `image` of the given size whose top left pixel is `corner`.
fn pack(image: &Image, corner: (u32, u32), size: Size, patch_size: u32, values: &[[f32; 256]; 3]) -> Slice {
    let patch = patch_size as usize;
    let (rows, cols) = (size.height as usize / patch, size.width as usize / patch);
    let (left, top) = (corner.0 as usize, corner.1 as usize);
    let stride = image.width() as usize;
    let mut pixel_values = Vec::with_capacity(3 * size.width as usize * size.height as usize);
    for (channel, values) in values.iter().enumerate() {
        for y in 0..patch {
            for row in 0..rows {
                // one line of a row of patches is contiguous in the picture and in the packing
                let start = (top + row * patch + y) * stride + left;
                let (line, _) = image.rgb()[3 * start..][..3 * cols * patch].as_chunks::<3>();
                pixel_values.extend(line.iter().map(|pixel| values[pixel[channel] as usize]));
            }
        }
    }
    Slice { rows, cols, pixel_values }
}

#[cfg(test)]
mod tests;

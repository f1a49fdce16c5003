//! The slicing plan: what sizes a picture is given to the tower in, and what it costs in tokens.
//!
//! The tower sees patches of 14 pixels and was trained on about 448 x 448 of them. A larger picture is shown twice: once
//! as a whole, shrunk (the overview), and once cut into a grid of slices of about that size. A plan needs only the
//! picture's width and height, so what a conversation costs can be known before a pixel is decoded.
//!
//! With `r` the `scale_resolution`, `d` the divisor (patch size times 4 in 16x mode, times 2 in 4x mode) and `round` going
//! to even at ties, as Python's does:
//!
//! * `fit(w, h)`: `height = trunc(r / sqrt(w/h))`, `width = trunc(height w/h)`, each then rounded to a multiple of `d`, at
//!   least `d`: the picture's aspect on an area of `r^2`.
//! * `n = min(ceil(w h / r^2), max_slice_nums)` slices. For 1 or none the picture is not cut; its only part is
//!   `fit(w, h)`, enlarged if it is small.
//! * Else every factorisation `rows x columns` of `n-1`, `n` and `n+1` (within the maximum, and not 1) is a candidate. The
//!   one with the least `|ln(w/h) - ln(columns/rows)|` wins, a tie goes to more rows.
//! * The overview is `fit(w, h)`, or the size itself rounded to multiples of `d` where it has at most `r^2` pixels.
//! * A slice is `fit(w', h')` of a cell, where `w'` is the width rounded to a multiple of the columns, over the columns;
//!   `h'` likewise. The whole picture is resized to the grid of such slices and then cut.
//!
//! # Source
//! `MiniCPMV4_6ImageProcessorPil` of transformers 5.24, `get_sliced_grid`, `find_best_resize`, `get_refine_size`.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::preprocessor_config::PreprocessorConfig;

/// How many patches become one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DownsampleMode {
    /// 16 patches a token: the window merger and the projector each merge 2 x 2.
    #[default]
    X16,
    /// 4 patches a token: only the projector merges.
    X4,
}

impl DownsampleMode {
    /// Patches along one side of the square that becomes one token; sizes are multiples of this many patches.
    pub const fn patches_a_side(self) -> u32 {
        match self {
            Self::X16 => 4,
            Self::X4 => 2,
        }
    }

    /// Patches in one token.
    pub const fn patches_a_token(self) -> usize {
        (self.patches_a_side() * self.patches_a_side()) as usize
    }
}

impl FromStr for DownsampleMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "16x" => Ok(Self::X16),
            "4x" => Ok(Self::X4),
            _ => Err(Error::UnknownDownsampleMode { found: text.to_owned() }),
        }
    }
}

impl fmt::Display for DownsampleMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X16 => "16x",
            Self::X4 => "4x",
        })
    }
}

/// A width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

/// A grid of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Slices from top to bottom.
    pub rows: u32,
    /// Slices from left to right.
    pub cols: u32,
    /// The size that each slice has after resizing; all are alike.
    pub slice: Size,
}

impl Grid {
    /// The size to which the whole picture is resized before it is cut.
    pub fn refined(&self) -> Size {
        Size { width: self.slice.width * self.cols, height: self.slice.height * self.rows }
    }
}

/// What a picture of one size becomes.
///
/// ```
/// # fn main() -> vlm_pipeline::Result<()> {
/// use vlm_pipeline::{Plan, PreprocessorConfig};
///
/// let plan = Plan::new(1084, 820, &PreprocessorConfig::default())?;
/// assert_eq!(plan.grid.map(|grid| (grid.rows, grid.cols)), Some((2, 3)));
/// assert_eq!(plan.pads(), [63; 7]); // the overview, then six slices row by row
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The picture's own size.
    pub size: Size,
    /// The size to which the whole picture is resized as the overview.
    pub overview: Size,
    /// The slices that follow the overview, if there are any.
    pub grid: Option<Grid>,
    /// The side of a patch in pixels.
    pub patch_size: u32,
    /// How many patches become one token.
    pub mode: DownsampleMode,
}

impl Plan {
    /// Plans a picture of `width` x `height` pixels under a checkpoint's settings; of those `max_slice_nums`, `slice_mode`
    /// and `downsample_mode` may be changed freely before.
    ///
    /// # Errors
    /// [`Error::EmptyPlan`] where a side is 0; [`Error::PreprocessorValue`] where a setting is out of the range that
    /// [`PreprocessorConfig::from_json`] accepts.
    pub fn new(width: u32, height: u32, config: &PreprocessorConfig) -> Result<Self> {
        config.check_sizes()?;
        if width == 0 || height == 0 {
            return Err(Error::EmptyPlan { width, height });
        }
        let fitter = Fitter {
            area: f64::from(config.scale_resolution) * f64::from(config.scale_resolution),
            side: f64::from(config.scale_resolution),
            divisor: config.patch_size * config.downsample_mode.patches_a_side(),
        };
        let (w, h) = (f64::from(width), f64::from(height));
        let best = if config.slice_mode { best_grid(w, h, fitter.area, config.max_slice_nums) } else { None };
        let grid = best.map(|(rows, cols)| {
            let cell_width = f64::from(ensure_divide(w, cols)) / f64::from(cols);
            let cell_height = f64::from(ensure_divide(h, rows)) / f64::from(rows);
            Grid { rows, cols, slice: fitter.fit(cell_width, cell_height) }
        });
        let overview =
            if grid.is_none() || w * h > fitter.area { fitter.fit(w, h) } else { fitter.round(w, h) };
        Ok(Self {
            size: Size { width, height },
            overview,
            grid,
            patch_size: config.patch_size,
            mode: config.downsample_mode,
        })
    }

    /// The parts in the order of the prompt: the overview, then the slices row by row.
    pub fn parts(&self) -> Vec<Size> {
        let slices = self.grid.map_or(0, |grid| grid.rows as usize * grid.cols as usize);
        let slice = self.grid.map_or(self.overview, |grid| grid.slice);
        std::iter::once(self.overview).chain(std::iter::repeat_n(slice, slices)).collect()
    }

    /// The patches of each part, (rows, columns): the reference's `target_sizes`.
    pub fn target_sizes(&self) -> Vec<(usize, usize)> {
        let patches = |length: u32| (length / self.patch_size) as usize;
        self.parts().iter().map(|part| (patches(part.height), patches(part.width))).collect()
    }

    /// The placeholders of each part, which is the number of its embeddings.
    pub fn pads(&self) -> Vec<usize> {
        let sizes = self.target_sizes().into_iter();
        sizes.map(|(rows, cols)| rows * cols / self.mode.patches_a_token()).collect()
    }

    /// The placeholders of the whole picture.
    pub fn total_pads(&self) -> usize {
        self.pads().iter().sum()
    }
}

/// Python's `max(round(length / divisor) * divisor, divisor)`.
fn ensure_divide(length: f64, divisor: u32) -> u32 {
    let divisor = f64::from(divisor);
    ((length / divisor).round_ties_even() * divisor).max(divisor) as u32
}

/// The constants by which lengths are fitted.
struct Fitter {
    side: f64,
    area: f64,
    divisor: u32,
}

impl Fitter {
    /// The aspect of `width` x `height` on the fitter's area, in multiples of the divisor.
    fn fit(&self, width: f64, height: f64) -> Size {
        let aspect = width / height;
        let height = (self.side / aspect.sqrt()).trunc();
        self.round((height * aspect).trunc(), height)
    }

    fn round(&self, width: f64, height: f64) -> Size {
        Size { width: ensure_divide(width, self.divisor), height: ensure_divide(height, self.divisor) }
    }
}

/// The rows and columns of the grid, `None` where the picture is not cut.
fn best_grid(width: f64, height: f64, area: f64, max_slices: u32) -> Option<(u32, u32)> {
    let log_aspect = (width / height).ln();
    let count = (width * height / area).ceil().min(f64::from(max_slices)) as u32;
    if count <= 1 {
        return None;
    }
    let mut best = (1, 1);
    let mut least = f64::INFINITY;
    for slices in (count - 1..=count + 1).filter(|&slices| slices != 1 && slices <= max_slices) {
        for rows in (1..=slices).filter(|rows| slices % rows == 0) {
            let cols = slices / rows;
            let error = (log_aspect - (f64::from(cols) / f64::from(rows)).ln()).abs();
            if error < least || (error == least && rows > best.0) {
                (best, least) = ((rows, cols), error);
            }
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests;

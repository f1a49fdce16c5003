//! What the tower reads: slices of pictures, each with its own grid.

use std::ops::Range;

use crate::{Config, DownsampleMode, Error, Result};

/// Rows and columns of patches (or of vectors).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// From top to bottom.
    pub rows: usize,
    /// From left to right.
    pub columns: usize,
}

impl From<[usize; 2]> for Grid {
    fn from([rows, columns]: [usize; 2]) -> Self {
        Self { rows, columns }
    }
}

impl Grid {
    /// rows · columns
    pub fn patches(self) -> usize {
        self.rows.saturating_mul(self.columns)
    }

    /// This grid with every `by.rows` x `by.columns` of it merged into one.
    pub(crate) fn reduced(self, by: Self) -> Self {
        let divide = |size: usize, by: usize| size.checked_div(by).unwrap_or(0);
        Self { rows: divide(self.rows, by.rows), columns: divide(self.columns, by.columns) }
    }
}

/// One picture, or one part of a sliced picture.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The reference's packing: for each channel and each of a patch's P rows, that row of every patch one after the other.
    ///
    /// # Shapes
    /// float32 `[channels, P, patches * P]`, patches in raster order
    pub pixel_values: &'a [f32],
    /// Rows and columns of patches.
    pub grid: Grid,
}

/// Checks a call's slices against the config and the room of a pass.
pub(crate) fn check(
    slices: &[Slice<'_>],
    config: &Config,
    mode: DownsampleMode,
    max_patches: usize,
) -> Result<()> {
    let divisor = config.divisor(mode);
    for (index, Slice { pixel_values, grid }) in slices.iter().enumerate() {
        let Grid { rows, columns } = *grid;
        let divides = |size: usize, by: usize| size > 0 && size.is_multiple_of(by);
        if !divides(rows, divisor.rows) || !divides(columns, divisor.columns) {
            let (by_rows, by_columns) = (divisor.rows, divisor.columns);
            return Err(Error::Grid { slice: index, rows, columns, by_rows, by_columns });
        }
        let patches = grid.patches();
        if patches > max_patches {
            return Err(Error::SliceTooLarge { slice: index, patches, max_patches });
        }
        let expected = patches * config.vision_config.patch_values();
        if pixel_values.len() != expected {
            return Err(Error::PixelValues { slice: index, expected, actual: pixel_values.len() });
        }
    }
    Ok(())
}

/// How many of the first slices fit into one pass.
pub(crate) fn group(slices: &[Slice<'_>], max_patches: usize) -> usize {
    let mut patches = 0usize;
    let fits = |slice: &&Slice<'_>| {
        patches = patches.saturating_add(slice.grid.patches());
        patches <= max_patches
    };
    slices.iter().take_while(fits).count()
}

/// The slices of one pass, at some stage of their reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass<'a> {
    slices: &'a [Slice<'a>],
    /// What the grids were divided by so far.
    divisor: Grid,
}

impl<'a> Pass<'a> {
    pub(crate) fn new(slices: &'a [Slice<'a>]) -> Self {
        Self { slices, divisor: Grid { rows: 1, columns: 1 } }
    }

    pub(crate) fn slices(self) -> &'a [Slice<'a>] {
        self.slices
    }

    /// The same pass after every `by.rows` x `by.columns` vectors were merged.
    pub(crate) fn reduced(self, by: Grid) -> Self {
        let Grid { rows, columns } = self.divisor;
        Self { divisor: Grid { rows: rows * by.rows, columns: columns * by.columns }, ..self }
    }

    /// The grids as they are now.
    pub(crate) fn grids(self) -> impl Iterator<Item = Grid> + 'a {
        self.slices.iter().map(move |slice| slice.grid.reduced(self.divisor))
    }

    /// The rows of each slice among those of all.
    pub(crate) fn ranges(self) -> impl Iterator<Item = (Grid, Range<usize>)> + 'a {
        self.grids().scan(0, |end, grid| {
            let start = *end;
            *end += grid.patches();
            Some((grid, start..*end))
        })
    }

    /// Rows of all slices together.
    pub(crate) fn rows(self) -> usize {
        self.grids().map(Grid::patches).sum()
    }
}

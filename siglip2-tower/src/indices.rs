//! Which rows a pass gathers: positions and window orders, sent to the device in one piece before the pass.

use std::ops::Range;

use fermi_blas::{Blas, Matrix, View, ViewMut};

use crate::positions::Positions;
use crate::slices::Pass;
use crate::{Grid, Result, window_order};

/// Indices for each patch of a pass, at most: a position, a place in the first window order, and the later orders, each
/// a quarter as long as the one before.
pub(crate) const INDICES: usize = 3;

/// The indices of a pass.
#[derive(Debug)]
pub(crate) struct Indices<B: Blas> {
    /// Position ids, then one window order after another. `[1, 3 N]`
    device: Matrix<B, u32>,
    /// The same on the host.
    host: Vec<u32>,
    /// Where each part ends: the positions first.
    ends: Vec<usize>,
}

impl<B: Blas> Indices<B> {
    pub(crate) fn new(device: &B, max_patches: usize) -> Result<Self> {
        let most = INDICES * max_patches;
        Ok(Self {
            device: Matrix::zeros(device, 1, most)?,
            host: Vec::with_capacity(most),
            ends: Vec::with_capacity(usize::BITS as usize),
        })
    }

    /// Sends the indices of a pass whose windows are merged, one grid after the other.
    pub(crate) fn upload(
        &mut self,
        device: &B,
        mut pass: Pass<'_>,
        positions: &Positions,
        windows: impl Iterator<Item = Grid>,
    ) -> Result<()> {
        let Self { device: target, host, ends } = self;
        host.clear();
        ends.clear();
        pass.grids().for_each(|grid| positions.append(grid.rows, grid.columns, host));
        ends.push(host.len());
        for window in windows {
            pass.ranges().for_each(|(grid, rows)| window_order::append(rows.start, grid, window, host));
            ends.push(host.len());
            pass = pass.reduced(window);
        }
        Ok(device.write(host, target.view_mut().column_range(0..host.len())?)?)
    }

    /// The positions' ids. `[1, T]`
    pub(crate) fn positions(&self) -> Result<View<'_, B, u32>> {
        self.part(0..self.ends[0])
    }

    /// Copies rows so that every window's vectors are contiguous; `merge` counts the window merges of a pass.
    ///
    /// # Shapes
    /// source `[T, D]`, windows `[T, D]`
    pub(crate) fn gather_windows(
        &self,
        device: &B,
        merge: usize,
        source: View<'_, B>,
        windows: ViewMut<'_, B>,
    ) -> Result<()> {
        let _span = device.span("window gather");
        let order = self.part(self.ends[merge]..self.ends[merge + 1])?;
        Ok(device.gather(source.into(), order, windows)?)
    }

    fn part(&self, range: Range<usize>) -> Result<View<'_, B, u32>> {
        Ok(self.device.view().column_range(range)?)
    }
}

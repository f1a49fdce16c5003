//! Which learned position a patch takes.
//!
//! A slice of any size is laid over the learned grid of P x P positions: patch i of n along an axis takes the bucket that
//! the coordinate i/n falls into. Coordinates meet boundaries exactly (10/28 = 25/70), so the result hangs on the last bit
//! of both; both are rebuilt here as the reference rounds them.

use std::collections::BTreeMap;

use crate::{Error, Result};

/// The P − 1 or so boundaries between buckets: `torch.arange(1/P, 1, 1/P)` in float32, bit for bit.
///
/// torch fills the range in blocks of 16 as two vectors of 8. A vector that starts at index s has the base
/// b = float32(start + step·s), taken in float64, and its element j is float32(float64(b) + j·step). The elements behind
/// the last whole block are float32(start + step·s) each.
///
/// # Source
/// torch 2.11 on x86-64, default, AVX2 and AVX-512 code paths.
pub fn boundaries(side: usize) -> Vec<f32> {
    if side < 2 {
        return Vec::new();
    }
    let step = 1.0 / side as f64;
    let start = step;
    let count = ((1.0 - start) / step).ceil() as usize;
    let blocks = count - count % 16;
    let at = |index: usize| (start + step * index as f64) as f32;
    let vectors =
        (0..blocks).map(|index| (f64::from(at(index - index % 8)) + (index % 8) as f64 * step) as f32);
    vectors.chain((blocks..count).map(at)).collect()
}

/// Buckets of the patches along an axis, by the number of patches: what to use in place of the reference's rule.
///
/// Numbers of patches that the table does not hold follow the reference's rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PositionTable {
    axes: BTreeMap<usize, Vec<u32>>,
}

impl PositionTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has patch i of `buckets.len()` along an axis take the bucket `buckets[i]`.
    #[must_use]
    pub fn with(mut self, buckets: Vec<u32>) -> Self {
        self.axes.insert(buckets.len(), buckets);
        self
    }

    fn check(&self, side: usize) -> Result<()> {
        for (&patches, buckets) in &self.axes {
            let largest = buckets.iter().copied().max().unwrap_or(0);
            if largest as usize >= side {
                return Err(Error::PositionTable { patches, entries: buckets.len(), largest, side });
            }
        }
        Ok(())
    }
}

/// The rule of one tower.
#[derive(Clone, Debug)]
pub(crate) struct Positions {
    side: usize,
    boundaries: Vec<f32>,
    table: PositionTable,
}

impl Positions {
    pub(crate) fn new(side: usize, table: PositionTable) -> Result<Self> {
        table.check(side)?;
        Ok(Self { side, boundaries: boundaries(side), table })
    }

    /// The bucket of patch `index` of `patches` along an axis: the count of boundaries that are at most
    /// float32(index) / float32(patches).
    fn bucket(&self, index: usize, patches: usize) -> u32 {
        if let Some(buckets) = self.table.axes.get(&patches) {
            return buckets[index];
        }
        let coordinate = index as f32 / patches as f32;
        self.boundaries.partition_point(|boundary| *boundary <= coordinate) as u32
    }

    /// Appends the ids of a grid's patches in raster order: bucket of the row · P + bucket of the column.
    pub(crate) fn append(&self, rows: usize, columns: usize, ids: &mut Vec<u32>) {
        for row in 0..rows {
            let first = self.bucket(row, rows) * self.side as u32;
            ids.extend((0..columns).map(|column| first + self.bucket(column, columns)));
        }
    }
}

#[cfg(test)]
mod tests;

//! What a caller chooses when a tower is loaded.

use crate::{Config, DownsampleMode, Error, PositionTable, Result};

/// More patches than this have no index.
const MOST_PATCHES: usize = 1 << 24;

/// What a caller chooses when a tower is loaded.
#[derive(Clone, Debug)]
pub struct Options {
    /// Patches that one pass takes at most: slices are grouped under it, and it sizes the scratch. A picture of 448 x 448
    /// pixels has 1024; parts of a usual plan have at most 1200 up to an aspect of 1:16, and 1376 up to 1:100.
    pub max_patches: usize,
    /// Query rows whose attention scores exist at once.
    pub attention_rows: usize,
    /// Patches per output vector; the config's mode if none is given.
    pub downsample_mode: Option<DownsampleMode>,
    /// Buckets in place of those of the reference's rule.
    pub position_table: PositionTable,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_patches: 2048,
            attention_rows: 256,
            downsample_mode: None,
            position_table: PositionTable::new(),
        }
    }
}

impl Options {
    /// The mode that a tower of `config` will run in.
    pub(crate) fn mode(&self, config: &Config) -> DownsampleMode {
        self.downsample_mode.unwrap_or(config.downsample_mode)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let values = [("max_patches", self.max_patches), ("attention_rows", self.attention_rows)];
        for (option, value) in values {
            if !(1..=MOST_PATCHES).contains(&value) {
                return Err(Error::InvalidOption { option, value, most: MOST_PATCHES });
            }
        }
        Ok(())
    }
}

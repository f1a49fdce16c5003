//! Heads and their widths.

use crate::{Error, Result};

/// Heads and widths of a scan.
///
/// Value head j reads key head `j / (value_heads / key_heads)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    key_heads: usize,
    value_heads: usize,
    key_width: usize,
    value_width: usize,
}

impl ScanShape {
    /// A scan of `key_heads` heads of `key_width` (queries and keys) and `value_heads` heads of `value_width`.
    ///
    /// # Errors
    /// [`Error::HeadGroups`] when the value heads are no multiple of the key heads.
    pub fn new(key_heads: usize, value_heads: usize, key_width: usize, value_width: usize) -> Result<Self> {
        if value_heads != 0 && value_heads.checked_rem(key_heads) != Some(0) {
            return Err(Error::HeadGroups { key_heads, value_heads });
        }
        Ok(Self { key_heads, value_heads, key_width, value_width })
    }

    /// Heads of queries and keys (Hk).
    pub fn key_heads(&self) -> usize {
        self.key_heads
    }

    /// Heads of values, decays and states (Hv).
    pub fn value_heads(&self) -> usize {
        self.value_heads
    }

    /// Width of a query or key (Dk).
    pub fn key_width(&self) -> usize {
        self.key_width
    }

    /// Width of a value (Dv).
    pub fn value_width(&self) -> usize {
        self.value_width
    }

    /// The key head that a value head reads.
    pub(crate) fn key_head(&self, value_head: usize) -> usize {
        value_head * self.key_heads / self.value_heads
    }

    /// Values of all states together.
    pub(crate) fn state_len(&self) -> usize {
        self.value_heads * self.key_width * self.value_width
    }
}

//! How large a picture may be before it is refused.

use crate::error::{Error, Origin, Result};

/// What a picture may cost. Every limit is checked against the header, before the pixels are given memory.
///
/// Decoding holds at most [`Limits::peak_bytes`] at once, whatever the file says.
///
/// ```
/// let limits = vlm_pipeline::Limits { max_pixels: 4_000_000, ..Default::default() };
/// assert!(limits.max_pixels < vlm_pipeline::Limits::default().max_pixels);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most pixels, width times height. By default 2^27 = 134,217,728, which a 108-megapixel phone camera fits.
    pub max_pixels: u64,
    /// The most pixels along one side. By default 65,535, the largest side a JPEG can state.
    pub max_side: u32,
    /// The most bytes of the encoded file. By default 256 MiB.
    pub max_file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_pixels: 1 << 27, max_side: 65_535, max_file_bytes: 256 << 20 }
    }
}

/// What a decoder may hold besides pixels: ancillary chunks, one row of scratch; and as much again for tags.
pub(super) const DECODER_SCRATCH: u64 = 32 << 20;

impl Limits {
    /// Whether a picture of this size is within the limits.
    pub fn allow(&self, width: u64, height: u64) -> bool {
        let side = u64::from(self.max_side);
        width <= side && height <= side && width * height <= self.max_pixels
    }

    /// As [`Self::allow`], as an error.
    pub(super) fn check(&self, width: u64, height: u64, origin: &Origin) -> Result<()> {
        if self.allow(width, height) {
            return Ok(());
        }
        let (max_pixels, max_side) = (self.max_pixels, self.max_side);
        Err(Error::ImageTooLarge { origin: origin.clone(), width, height, max_pixels, max_side })
    }

    /// An upper bound of what decoding one picture of `pixels` pixels from `file` bytes holds at once.
    ///
    /// 16 bytes a pixel (the widest samples, float32 with alpha; a progressive JPEG's coefficients are narrower) and as
    /// much again for the decoder's own copy, three copies of the file, and 64 MiB for tables and tags.
    pub const fn peak_bytes(pixels: u64, file: u64) -> u64 {
        32 * pixels + 3 * file + 2 * DECODER_SCRATCH
    }
}

//! Pictures: files and bytes to upright RGB.
//!
//! | file | concept |
//! |---|---|
//! | `format` | which of the six formats, by the first bytes |
//! | `limits` | how large a picture may be, checked before memory is taken |
//! | `integrity` | damage that decoders would paint over |
//! | `decode` | the order of it all |
//! | `flatten` | grey, transparency and depth to three 8-bit channels |
//! | `exif` | which way up |
//! | `tiff`, `webp` | tags and chunks that are checked before a decoder trusts them |
//!
//! Pixels are taken as stored: colour profiles are ignored, as the reference ignores them. JPEG leaves its decoders
//! some freedom (the inverse transform, the interpolation of colour), so a JPEG's pixels may differ by a few levels
//! from another decoder's; lossless formats are exact.

mod bytes;
mod decode;
mod exif;
mod flatten;
mod format;
mod integrity;
mod limits;
#[cfg(test)]
mod tests;
mod tiff;
mod webp;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha2::{Digest, Sha256};

use crate::error::{Error, Origin, Result};
pub use limits::Limits;

/// An upright picture in 8-bit RGB. Copies share their pixels.
///
/// ```
/// # fn main() -> vlm_pipeline::Result<()> {
/// use vlm_pipeline::Image;
///
/// let image = Image::from_rgb(2, 1, vec![255, 0, 0, 0, 0, 255])?;
/// assert_eq!((image.width(), image.height()), (2, 1));
/// assert_eq!(image.pixel(1, 0), Some([0, 0, 255]));
/// assert!(Image::from_bytes(b"not a picture").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    rgb: Arc<Vec<u8>>,
}

impl Image {
    /// Reads a PNG, JPEG, WebP, GIF (its first frame), BMP or TIFF file under the default [`Limits`].
    ///
    /// # Errors
    /// Every error names the file: it cannot be read, is empty, of no known format, too large, truncated, damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_within(path, &Limits::default())
    }

    /// As [`Image::open`], under limits of the caller's.
    ///
    /// # Errors
    /// As [`Image::open`].
    pub fn open_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let (origin, bytes) = read(path.as_ref(), limits)?;
        Self::decode(&bytes, &origin, limits)
    }

    /// Decodes an encoded picture under the default [`Limits`].
    ///
    /// # Errors
    /// As [`Image::open`], but for reading.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_within(bytes, &Limits::default())
    }

    /// As [`Image::from_bytes`], under limits of the caller's.
    ///
    /// # Errors
    /// As [`Image::from_bytes`].
    pub fn from_bytes_within(bytes: &[u8], limits: &Limits) -> Result<Self> {
        if bytes.len() as u64 > limits.max_file_bytes {
            return Err(Error::ImageFileTooLong { origin: Origin::Bytes, limit: limits.max_file_bytes });
        }
        Self::decode(bytes, &Origin::Bytes, limits)
    }

    /// Decodes a picture written as base64 text or as a `data:image/...;base64,` URL, as chat requests carry them.
    ///
    /// White space within is skipped; padding may be missing.
    ///
    /// # Errors
    /// [`Error::Base64`] and [`Error::DataUrl`]; else as [`Image::from_bytes`].
    pub fn from_base64(text: &str) -> Result<Self> {
        Self::from_base64_within(text, &Limits::default())
    }

    /// As [`Image::from_base64`], under limits of the caller's.
    ///
    /// # Errors
    /// As [`Image::from_base64`].
    pub fn from_base64_within(text: &str, limits: &Limits) -> Result<Self> {
        const ENGINE: GeneralPurpose = GeneralPurpose::new(
            &base64::alphabet::STANDARD,
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
        );
        let text = base64_of(text.trim())?;
        if text.len() as u64 / 4 * 3 > limits.max_file_bytes {
            return Err(Error::ImageFileTooLong { origin: Origin::Bytes, limit: limits.max_file_bytes });
        }
        let bytes = if text.bytes().any(|byte| byte.is_ascii_whitespace()) {
            ENGINE.decode(text.split_ascii_whitespace().collect::<String>())
        } else {
            ENGINE.decode(text)
        };
        Self::from_bytes_within(&bytes.map_err(|source| Error::Base64 { source: source.into() })?, limits)
    }

    /// Takes raw pixels: `3 * width * height` bytes, row by row, red, green, blue.
    ///
    /// # Errors
    /// [`Error::RgbLength`] where the bytes do not fit the size or a side is 0.
    pub fn from_rgb(width: u32, height: u32, rgb: Vec<u8>) -> Result<Self> {
        let expected = 3u64.saturating_mul(u64::from(width) * u64::from(height));
        if expected == 0 || expected != rgb.len() as u64 {
            return Err(Error::RgbLength { width, height, expected, actual: rgb.len() });
        }
        Ok(Self { width, height, rgb: Arc::new(rgb) })
    }

    /// The upright width and height that an image file states, read from its header without decoding a pixel.
    ///
    /// # Errors
    /// As [`Image::open`], except that damage behind the header goes unseen.
    pub fn size_of_file(path: impl AsRef<Path>, limits: &Limits) -> Result<(u32, u32)> {
        let (origin, bytes) = read(path.as_ref(), limits)?;
        decode::probe(&bytes, &origin, limits)
    }

    /// The upright width and height that encoded bytes state, without decoding a pixel.
    ///
    /// # Errors
    /// As [`Image::from_bytes`], except that damage behind the header goes unseen.
    pub fn size_of_bytes(bytes: &[u8], limits: &Limits) -> Result<(u32, u32)> {
        decode::probe(bytes, &Origin::Bytes, limits)
    }

    fn decode(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<Self> {
        let (width, height, rgb) = decode::decode(bytes, origin, limits)?;
        Self::from_rgb(width, height, rgb)
    }

    /// Pixels from left to right.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Pixels from top to bottom.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The pixels, `[height, width, 3]` bytes.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// One pixel, or `None` outside the picture.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        let inside = x < self.width && y < self.height;
        let at = 3 * (y as usize * self.width as usize + x as usize);
        if inside { self.rgb.get(at..at + 3)?.try_into().ok() } else { None }
    }

    /// A hash of the size and the pixels, by which caches tell pictures apart: SHA-256, so that it stays the same over
    /// versions and machines and nobody can make two pictures collide.
    ///
    /// Two files of the same pixels have the same hash. It is computed at each call.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.width.to_le_bytes());
        hash.update(self.height.to_le_bytes());
        hash.update(self.rgb());
        hash.finalize().into()
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("width", &self.width)
            .field("height", &self.height)
            .finish_non_exhaustive()
    }
}

/// A file's bytes, never more than the limit, also where its size is not known beforehand (a pipe, a device).
fn read(path: &Path, limits: &Limits) -> Result<(Origin, Vec<u8>)> {
    let origin = Origin::File(path.to_path_buf());
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limits.max_file_bytes.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|source| Error::ReadImage { origin: origin.clone(), source })?;
    if bytes.len() as u64 > limits.max_file_bytes {
        return Err(Error::ImageFileTooLong { origin, limit: limits.max_file_bytes });
    }
    Ok((origin, bytes))
}

/// The base64 part of a `data:` URL, or the text itself.
fn base64_of(text: &str) -> Result<&str> {
    let Some(url) = text.get(..5).filter(|start| start.eq_ignore_ascii_case("data:")).map(|_| &text[5..])
    else {
        return Ok(text);
    };
    let (header, data) = url.split_once(',').unwrap_or((url, ""));
    match header.to_ascii_lowercase().strip_suffix(";base64") {
        Some(kind) if kind.starts_with("image/") => Ok(data),
        _ => Err(Error::DataUrl { header: header.chars().take(64).collect() }),
    }
}

//! Encoded bytes to upright 8-bit RGB, in the order that keeps a hostile file harmless.
//!
//! Format by the first bytes; size from the header against the [`Limits`]; container walked for damage; only then memory
//! for the pixels, the decoder, the colour rules of `flatten` and the orientation of `exif`.

use std::io::Cursor;

use image::codecs::{bmp, gif, jpeg, png, tiff, webp};
use image::{ImageDecoder, ImageResult};

use super::bytes::be32;
use super::format::Format;
use super::limits::{DECODER_SCRATCH, Limits};
use super::{exif, flatten, integrity, tiff as tiff_tags, webp as webp_chunks};
use crate::error::{Cause, Error, Origin, Result};

/// Decodes a picture: its width, height and RGB pixels, upright.
pub(super) fn decode(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<(u32, u32, Vec<u8>)> {
    guarded(origin, || decode_unguarded(bytes, origin, limits))
}

/// The upright size that the header states, without decoding.
pub(super) fn probe(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<(u32, u32)> {
    guarded(origin, || {
        let format = recognise(bytes, origin, limits)?;
        let (width, height) = open(format, bytes, origin, limits)?.dimensions();
        Ok(exif::turned(exif::orientation(format, bytes), width, height))
    })
}

/// Runs a decoder so that a panic inside it becomes an error. The formats' decoders are other people's and large; every
/// panic that fuzzing found is kept from happening by a check before, and this is for the ones it did not find.
fn guarded<T>(origin: &Origin, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // a decoder that broke off is dropped with its buffers: nothing of it is looked at again
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::DecoderPanicked { origin: origin.clone() }))
}

fn decode_unguarded(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<(u32, u32, Vec<u8>)> {
    let format = recognise(bytes, origin, limits)?;
    integrity::check(format, bytes, origin)?;
    let mut decoder = open(format, bytes, origin, limits)?;
    let refuse = |source: Cause| Error::DecodeImage { origin: origin.clone(), format: format.name(), source };

    let (width, height) = decoder.dimensions();
    let colour = decoder.color_type();
    let total = decoder.total_bytes();
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(total.saturating_mul(2) + DECODER_SCRATCH);
    decoder.set_limits(allowed).map_err(|source| refuse(source.into()))?;

    let total = usize::try_from(total).map_err(|source| refuse(source.into()))?;
    let mut raw = Vec::new();
    raw.try_reserve_exact(total).map_err(|source| refuse(source.into()))?;
    raw.resize(total, 0);
    decoder.read_image_boxed(&mut raw).map_err(|source| refuse(source.into()))?;

    let rgb = flatten::to_rgb8(raw, colour).ok_or_else(|| refuse(unsupported_colour(colour)))?;
    Ok(exif::apply(exif::orientation(format, bytes), width, height, rgb))
}

/// The format, once everything is checked that must be known before a decoder may look at the bytes.
fn recognise(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<Format> {
    if bytes.is_empty() {
        return Err(Error::EmptyImage { origin: origin.clone() });
    }
    let format = Format::of(bytes).ok_or_else(|| Error::UnknownImageFormat {
        origin: origin.clone(),
        head: bytes[..bytes.len().min(8)].to_vec(),
    })?;
    match format {
        // the decoder reads on to the pixels before it tells the size
        Format::Png => {
            let side = |at| be32(bytes, at).map_or(0, u64::from);
            limits.check(side(16), side(20), origin)?;
        }
        Format::WebP => webp_chunks::check(bytes, origin, limits)?,
        Format::Tiff => tiff_tags::check(bytes, origin, limits)?,
        Format::Jpeg | Format::Gif | Format::Bmp => {}
    }
    Ok(format)
}

/// A decoder that has read the header and nothing more, its size within the limits.
fn open<'a>(
    format: Format,
    bytes: &'a [u8],
    origin: &Origin,
    limits: &Limits,
) -> Result<Box<dyn ImageDecoder + 'a>> {
    let decoder = new_decoder(format, bytes).map_err(|source| Error::DecodeImage {
        origin: origin.clone(),
        format: format.name(),
        source: source.into(),
    })?;
    let (width, height) = decoder.dimensions();
    limits.check(u64::from(width), u64::from(height), origin)?;
    if width == 0 || height == 0 {
        return Err(Error::EmptyImage { origin: origin.clone() });
    }
    Ok(decoder)
}

fn new_decoder(format: Format, bytes: &[u8]) -> ImageResult<Box<dyn ImageDecoder + '_>> {
    let reader = Cursor::new(bytes);
    let mut scratch = image::Limits::no_limits();
    scratch.max_alloc = Some(DECODER_SCRATCH);
    Ok(match format {
        Format::Png => Box::new(png::PngDecoder::with_limits(reader, scratch)?),
        Format::Jpeg => Box::new(jpeg::JpegDecoder::new(reader)?),
        Format::WebP => Box::new(webp::WebPDecoder::new(reader)?),
        Format::Gif => Box::new(gif::GifDecoder::new(reader)?),
        Format::Bmp => Box::new(bmp::BmpDecoder::new(reader)?),
        Format::Tiff => Box::new(tiff::TiffDecoder::new(reader)?),
    })
}

fn unsupported_colour(colour: image::ColorType) -> Cause {
    use image::error::{ImageFormatHint, UnsupportedError, UnsupportedErrorKind};
    let kind = UnsupportedErrorKind::Color(colour.into());
    UnsupportedError::from_format_and_kind(ImageFormatHint::Unknown, kind).into()
}

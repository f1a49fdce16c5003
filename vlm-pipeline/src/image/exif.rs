//! Which way up a picture is, as its camera noted it.
//!
//! A camera writes its sensor's rows as they come and states in the EXIF tag 274 how to turn them:
//!
//! | value | the stored picture is | undone by |
//! |---|---|---|
//! | 1 | upright | nothing |
//! | 2 | mirrored left to right | mirroring left to right |
//! | 3 | upside down | half a turn |
//! | 4 | mirrored top to bottom | mirroring top to bottom |
//! | 5 | mirrored along the main diagonal | transposing |
//! | 6 | lying on its left side | a quarter turn clockwise |
//! | 7 | mirrored along the other diagonal | transposing about it |
//! | 8 | lying on its right side | a quarter turn anticlockwise |
//!
//! Whatever cannot be read counts as 1. EXIF is a TIFF file inside a JPEG's APP1 segment, a PNG's `eXIf` chunk or a
//! WebP's `EXIF` chunk; of a TIFF it is the file itself.

use super::bytes::be16;
use super::format::Format;
use super::integrity::png_chunks;
use super::{tiff, webp};

/// The orientation, 1 to 8, that the file states.
pub(super) fn orientation(format: Format, bytes: &[u8]) -> u8 {
    let tiff = match format {
        Format::Jpeg => in_jpeg(bytes),
        Format::Png => png_chunks(bytes).find(|chunk| &chunk.name == b"eXIf").map(|chunk| chunk.data),
        Format::WebP => in_webp(bytes),
        Format::Tiff => Some(bytes),
        Format::Gif | Format::Bmp => None,
    };
    tiff.and_then(in_tiff).filter(|value| (1..=8).contains(value)).unwrap_or(1)
}

/// The EXIF block of the first APP1 segment that has one.
fn in_jpeg(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 2;
    loop {
        while *bytes.get(at + 1)? == 0xff {
            at += 1;
        }
        let (&[0xff, marker], length) = (bytes.get(at..at + 2)?, usize::from(be16(bytes, at + 2)?)) else {
            return None;
        };
        // the scan begins: what comes after belongs to no header
        if marker == 0xda || marker == 0xd9 {
            return None;
        }
        let segment = bytes.get(at + 4..at + 2 + length)?;
        if let (0xe1, Some(tiff)) = (marker, segment.strip_prefix(b"Exif\0\0")) {
            return Some(tiff);
        }
        at += 2 + length;
    }
}

/// The `EXIF` chunk of a WebP. Some writers put the JPEG segment's prefix before it.
fn in_webp(bytes: &[u8]) -> Option<&[u8]> {
    let (_, data) = webp::chunks(bytes, webp::FIRST_CHUNK).find(|(name, _)| name == b"EXIF")?;
    Some(data.strip_prefix(b"Exif\0\0").unwrap_or(data))
}

/// Tag 274 of the first directory of a TIFF.
fn in_tiff(bytes: &[u8]) -> Option<u8> {
    const ORIENTATION: u16 = 274;
    let entry = tiff::entries(bytes).find(|entry| entry.tag == ORIENTATION)?;
    entry.value()?.try_into().ok()
}

/// Turns `rgb` (rows of `width` pixels) upright. Returns the new width, height and pixels.
pub(super) fn apply(orientation: u8, width: u32, height: u32, rgb: Vec<u8>) -> (u32, u32, Vec<u8>) {
    let (w, h) = (width as usize, height as usize);
    let source: Box<dyn Fn(usize, usize) -> usize> = match orientation {
        2 => Box::new(move |x, y| y * w + (w - 1 - x)),
        3 => Box::new(move |x, y| (h - 1 - y) * w + (w - 1 - x)),
        4 => Box::new(move |x, y| (h - 1 - y) * w + x),
        5 => Box::new(move |x, y| x * w + y),
        6 => Box::new(move |x, y| (h - 1 - x) * w + y),
        7 => Box::new(move |x, y| (h - 1 - x) * w + (w - 1 - y)),
        8 => Box::new(move |x, y| x * w + (w - 1 - y)),
        _ => return (width, height, rgb),
    };
    let (new_width, new_height) = turned(orientation, width, height);
    let mut turned = Vec::with_capacity(rgb.len());
    for y in 0..new_height as usize {
        for x in 0..new_width as usize {
            let at = 3 * source(x, y);
            turned.extend_from_slice(&rgb[at..at + 3]);
        }
    }
    (new_width, new_height, turned)
}

/// The size of a `width` x `height` picture once it is upright.
pub(super) fn turned(orientation: u8, width: u32, height: u32) -> (u32, u32) {
    if orientation >= 5 { (height, width) } else { (width, height) }
}

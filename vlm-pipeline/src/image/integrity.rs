//! Damage that a lenient decoder would paint over.
//!
//! A JPEG decoder fills what is missing with grey and a PNG decoder skips an ancillary chunk whose checksum fails. To a
//! person that is kind; here a half-grey picture would be described as if it were whole. So both containers are walked
//! first, without decoding: a JPEG must reach its end marker, and every PNG chunk up to `IEND` must match its checksum.

use super::bytes::{be16, be32};
use super::format::Format;
use crate::error::{Error, Origin, Result};

/// Checks what can be checked without decoding.
pub(super) fn check(format: Format, bytes: &[u8], origin: &Origin) -> Result<()> {
    let whole = match format {
        Format::Jpeg => jpeg_reaches_its_end(bytes),
        Format::Png => return check_png(bytes, origin),
        // these decoders report a short file themselves
        Format::WebP | Format::Gif | Format::Bmp | Format::Tiff => true,
    };
    if whole { Ok(()) } else { Err(truncated(format, bytes, origin)) }
}

fn truncated(format: Format, bytes: &[u8], origin: &Origin) -> Error {
    Error::TruncatedImage { origin: origin.clone(), format: format.name(), length: bytes.len() }
}

/// Walks the segments of a JPEG and the coded data between them until the end marker.
fn jpeg_reaches_its_end(bytes: &[u8]) -> bool {
    const SOI: u8 = 0xd8;
    const EOI: u8 = 0xd9;
    const TEM: u8 = 0x01;
    let mut at = 0;
    while let Some((marker, after)) = next_marker(bytes, at) {
        at = after;
        match marker {
            EOI => return true,
            SOI | TEM => {}
            _ => {
                // the length counts its own two bytes; after a start of scan the coded data follows, and in it
                // `next_marker` passes over stuffed zeros and restart markers
                let Some(length) = be16(bytes, at) else { return false };
                at += usize::from(length).max(2);
            }
        }
    }
    false
}

/// The next marker that is not a restart, and the position after it.
fn next_marker(bytes: &[u8], from: usize) -> Option<(u8, usize)> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0xff)?;
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            0x00 | 0xd0..=0xd7 => at += 2,
            marker => return Some((marker, at + 2)),
        }
    }
}

/// One chunk of a PNG: where it begins, its name and its data.
pub(super) struct Chunk<'a> {
    pub(super) offset: usize,
    pub(super) name: [u8; 4],
    pub(super) data: &'a [u8],
    crc: u32,
}

/// The chunks of a PNG as far as they are whole.
pub(super) fn png_chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut at = 8;
    std::iter::from_fn(move || {
        let offset = at;
        let length = be32(bytes, at)? as usize;
        let name = be32(bytes, at + 4)?.to_be_bytes();
        let data = bytes.get(at + 8..(at + 8).checked_add(length)?)?;
        let crc = be32(bytes, at + 8 + length)?;
        at += 12 + length;
        Some(Chunk { offset, name, data, crc })
    })
}

fn check_png(bytes: &[u8], origin: &Origin) -> Result<()> {
    for chunk in png_chunks(bytes) {
        let computed = crc32(&[&chunk.name, chunk.data]);
        if computed != chunk.crc {
            let name = chunk.name.escape_ascii().to_string();
            let (offset, found) = (chunk.offset, chunk.crc);
            return Err(Error::DamagedChunk { origin: origin.clone(), chunk: name, offset, found, computed });
        }
        match &chunk.name {
            b"IEND" => return Ok(()),
            // the decoder indexes a palette by threes without looking
            b"PLTE" if !matches!(chunk.data.len(), 3..=768) || chunk.data.len() % 3 != 0 => {
                return Err(Error::PaletteLength { origin: origin.clone(), length: chunk.data.len() });
            }
            _ => {}
        }
    }
    Err(truncated(Format::Png, bytes, origin))
}

/// The checksum of PNG: CRC-32 with the reflected polynomial `edb88320`.
pub(super) fn crc32(parts: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    let step = |crc: u32, byte: &u8| TABLE[(crc as u8 ^ byte) as usize] ^ (crc >> 8);
    !parts.iter().fold(!0, |crc, part| part.iter().fold(crc, step))
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

//! The chunks of a WebP, read without trusting them.
//!
//! A WebP is a RIFF file: a name of four letters, a length, that many bytes, padded to an even length. The picture is in
//! a `VP8 ` or `VP8L` chunk; an animation's frames are `ANMF` chunks that hold such chunks behind a header of 16 bytes.

use super::bytes::{le16, le32};
use super::limits::Limits;
use crate::error::{Origin, Result};

/// The chunks from `at` on, as far as they are whole; the last may be cut.
pub(super) fn chunks(bytes: &[u8], mut at: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let name = bytes.get(at..at.checked_add(4)?)?;
        let length = le32(bytes, at + 4)? as usize;
        let start = at + 8;
        let end = start.saturating_add(length).min(bytes.len());
        at = end.saturating_add(length % 2);
        Some((name, &bytes[start..end]))
    })
}

/// Where the first chunk of the file begins.
pub(super) const FIRST_CHUNK: usize = 12;

/// Refuses a file of which any picture states a size beyond the limits in its own header: the decoder takes memory for it
/// before it compares it with the file's.
pub(super) fn check(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<()> {
    for (name, data) in chunks(bytes, FIRST_CHUNK) {
        check_picture(name, data, origin, limits)?;
        if name == b"ANMF" {
            for (name, data) in chunks(data, 16) {
                check_picture(name, data, origin, limits)?;
            }
        }
    }
    Ok(())
}

fn check_picture(name: &[u8], data: &[u8], origin: &Origin, limits: &Limits) -> Result<()> {
    let size = match name {
        b"VP8 " => {
            le16(data, 6).zip(le16(data, 8)).map(|(w, h)| (u64::from(w & 0x3fff), u64::from(h & 0x3fff)))
        }
        b"VP8L" => {
            le32(data, 1).map(|bits| (u64::from(bits & 0x3fff) + 1, u64::from(bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    };
    size.map_or(Ok(()), |(width, height)| limits.check(width, height, origin))
}

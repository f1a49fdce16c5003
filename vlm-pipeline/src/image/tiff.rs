//! The first directory of a TIFF, read without trusting it.
//!
//! A directory is a list of tags, each with a type, a count and either its values or where in the file they lie. A
//! BigTIFF (version 43) differs in that its counts and offsets have 64 bits.

use super::bytes::{be16, be32, le16, le32};
use super::limits::Limits;
use crate::error::{Error, Origin, Result};

/// One tag of a directory.
pub(super) struct Entry<'a> {
    pub(super) tag: u16,
    kind: u16,
    pub(super) count: u64,
    /// Where the values stand if they fit into the entry, else where their offset stands.
    at: usize,
    file: Reader<'a>,
}

const SHORT: u16 = 3;
const LONG: u16 = 4;

impl Entry<'_> {
    /// The one value of a SHORT or LONG tag.
    pub(super) fn value(&self) -> Option<u32> {
        match self.kind {
            SHORT if self.count == 1 => self.file.u16(self.at).map(u32::from),
            LONG if self.count == 1 => self.file.u32(self.at),
            _ => None,
        }
    }

    /// The bytes that the values take in the file.
    fn bytes(&self) -> u64 {
        let width = match self.kind {
            SHORT | 8 => 2,
            LONG | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 | 17 | 18 => 8,
            _ => 1,
        };
        self.count.saturating_mul(width)
    }
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    wide: bool,
}

impl Reader<'_> {
    fn u16(&self, at: usize) -> Option<u16> {
        if self.big_endian { be16(self.bytes, at) } else { le16(self.bytes, at) }
    }

    fn u32(&self, at: usize) -> Option<u32> {
        if self.big_endian { be32(self.bytes, at) } else { le32(self.bytes, at) }
    }

    /// A count or an offset.
    fn count(&self, at: usize) -> Option<u64> {
        let (first, second) = (u64::from(self.u32(at)?), u64::from(self.u32(at.checked_add(4)?)?));
        Some(match (self.wide, self.big_endian) {
            (false, _) => first,
            (true, false) => second << 32 | first,
            (true, true) => first << 32 | second,
        })
    }
}

/// The tags of the first directory, as far as it lies in the file; none where this is no TIFF.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let directory = first_directory(bytes);
    let (file, start, count) = directory.unwrap_or((Reader { bytes, big_endian: false, wide: false }, 0, 0));
    (0..count).map_while(move |index| {
        let at =
            usize::try_from(index).ok()?.checked_mul(if file.wide { 20 } else { 12 })?.checked_add(start)?;
        let (tag, kind) = (file.u16(at)?, file.u16(at + 2)?);
        let count = if file.wide { file.count(at + 4)? } else { u64::from(file.u32(at + 4)?) };
        Some(Entry { tag, kind, count, at: at + if file.wide { 12 } else { 8 }, file })
    })
}

/// How to read the file, where its first entry stands, and how many there are.
fn first_directory(bytes: &[u8]) -> Option<(Reader<'_>, usize, u64)> {
    let (big_endian, wide) = match bytes.get(..4)? {
        b"II*\0" => (false, false),
        b"MM\0*" => (true, false),
        b"II+\0" => (false, true),
        b"MM\0+" => (true, true),
        _ => return None,
    };
    let file = Reader { bytes, big_endian, wide };
    if wide {
        let at = usize::try_from(file.count(8)?).ok()?;
        Some((file, at.checked_add(8)?, file.count(at)?))
    } else {
        let at = file.u32(4)? as usize;
        Some((file, at.checked_add(2)?, u64::from(file.u16(at)?)))
    }
}

/// The most values of one structural tag: the offsets of all tiles of 16 x 16 in 134 megapixels.
const MAX_COUNT: u64 = 1 << 19;

/// Refuses a directory whose tags claim more values than the file holds, or tiles beyond the limits: the decoder takes
/// memory for both before it reads them.
pub(super) fn check(bytes: &[u8], origin: &Origin, limits: &Limits) -> Result<()> {
    const TILE_WIDTH: u16 = 322;
    const TILE_LENGTH: u16 = 323;
    // private tags from 700 on (colour profiles, notes) are never read
    const FIRST_PRIVATE: u16 = 700;
    let (mut width, mut height) = (1, 1);
    for entry in entries(bytes).filter(|entry| entry.tag < FIRST_PRIVATE) {
        if entry.bytes() > bytes.len() as u64 || entry.count > MAX_COUNT {
            return Err(Error::TiffTag { origin: origin.clone(), tag: entry.tag, count: entry.count });
        }
        match entry.tag {
            TILE_WIDTH => width = entry.value().map_or(0, u64::from),
            TILE_LENGTH => height = entry.value().map_or(0, u64::from),
            _ => {}
        }
    }
    limits.check(width, height, origin)
}

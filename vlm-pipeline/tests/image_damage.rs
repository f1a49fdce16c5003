//! Damaged, hostile and absurd picture files: a typed error, little memory, and the next picture is unharmed.
//!
//! The counting allocator counts for the whole process, so every test here holds one lock.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod picture;

use std::sync::{Mutex, MutexGuard};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fermi_blas::testing::allocation::{CountingAllocator, count};
use picture::{chunk, crc32};
use proptest::prelude::*;
use serde_json::Value;
use vlm_pipeline::{Error, Image, Limits, Result};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a refused picture may hold at its peak.
const ALLOWANCE: usize = 64 << 20;

/// The golden files, by name.
fn files() -> Vec<(String, Vec<u8>)> {
    let entries: Vec<Value> = serde_json::from_str(include_str!("data/image_files.json")).unwrap();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    entries
        .iter()
        .map(|entry| (text(entry, "name"), STANDARD.decode(text(entry, "base64")).unwrap()))
        .collect()
}

fn file(name: &str) -> Vec<u8> {
    files().into_iter().find(|(candidate, _)| candidate == name).unwrap().1
}

/// The error of decoding `bytes`, within the allowance; a good picture must still decode afterwards.
fn refused(bytes: &[u8]) -> Error {
    let (result, allocations) = count(|| Image::from_bytes(bytes));
    let error = result.expect_err("a damaged picture was decoded");
    assert!(allocations.peak_bytes < ALLOWANCE, "{error}: {} bytes held", allocations.peak_bytes);
    let good = Image::from_bytes(&file("rgb png")).unwrap();
    assert_eq!((good.width(), good.height()), (7, 5));
    error
}

fn png(width: u32, height: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let header = [width.to_be_bytes().as_slice(), &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header), chunks.concat(), chunk(b"IEND", b"")].concat()
}

/// A zlib stream of `literals` zeros and then `matches` times 258 more, 13 bits each: what a bomb is made of.
fn deflated_zeros(literals: usize, matches: usize) -> Vec<u8> {
    // one last block of the fixed code: 00110000 is a zero, 11000101 00000 copies 258 bytes from one back, 0000000 ends
    let bits = std::iter::once("110")
        .chain(std::iter::repeat_n("00110000", literals))
        .chain(std::iter::repeat_n("1100010100000", matches))
        .chain(std::iter::once("0000000"))
        .flat_map(str::bytes);
    let mut out = vec![0x78, 0x9c];
    for (index, bit) in bits.enumerate() {
        if index % 8 == 0 {
            out.push(0);
        }
        *out.last_mut().unwrap() |= (bit - b'0') << (index % 8);
    }
    let adler = ((literals + 258 * matches) % 65_521) as u32 * 65_536 + 1;
    out.extend(adler.to_be_bytes());
    out
}

#[test]
fn b3_a_small_png_that_claims_900_megapixels() {
    let _alone = alone();
    let bomb = png(30_000, 30_000, &[chunk(b"IDAT", &[0x78, 0x9c, 3, 0, 0, 0, 0, 1])]);
    assert!(bomb.len() < 100);
    match refused(&bomb) {
        Error::ImageTooLarge { width: 30_000, height: 30_000, max_pixels, .. } => {
            assert_eq!(max_pixels, Limits::default().max_pixels);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn b3_headers_that_claim_too_much_in_every_format() {
    let _alone = alone();
    let wide = 60_000u16;
    let jpeg = {
        let [high, low] = wide.to_be_bytes();
        let frame = [0xff, 0xc0, 0, 17, 8, high, low, high, low, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0];
        [&[0xff, 0xd8][..], &frame, &[0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0, 0xff, 0xd9]].concat()
    };
    let mut gif = file("transparent gif");
    gif[6..8].copy_from_slice(&wide.to_le_bytes());
    gif[8..10].copy_from_slice(&wide.to_le_bytes());
    let mut bmp = file("rgb bmp");
    bmp[18..22].copy_from_slice(&60_000u32.to_le_bytes());
    bmp[22..26].copy_from_slice(&60_000u32.to_le_bytes());
    let mut webp = file("orientation 1 webp");
    assert_eq!(&webp[12..16], b"VP8X");
    webp[24..30].copy_from_slice(&[0xff, 0x3f, 0, 0xff, 0x3f, 0]);
    for (name, bytes) in [("JPEG", jpeg), ("GIF", gif), ("BMP", bmp), ("WebP", webp)] {
        match refused(&bytes) {
            Error::ImageTooLarge { width, height, .. } => assert!(width * height > 1 << 27, "{name}"),
            // the canvas and the picture in it disagree, which the decoder may notice first
            Error::DecodeImage { format, .. } => assert_eq!((format, name), ("WebP", "WebP")),
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn b3_compressed_text_and_profiles_that_swell() {
    let _alone = alone();
    let swelling = deflated_zeros(1, 1 << 20); // 258 MiB
    let pixel = chunk(b"IDAT", &deflated_zeros(4, 0));
    for (name, prefix) in [(b"zTXt", &b"note\0\0"[..]), (b"iCCP", b"p\0\0"), (b"iTXt", b"note\0\x01\0\0\0")] {
        let bomb = png(1, 1, &[chunk(name, &[prefix, &swelling].concat()), pixel.clone()]);
        let (result, allocations) = count(|| Image::from_bytes(&bomb));
        assert!(allocations.peak_bytes < ALLOWANCE, "{}: {}", name.escape_ascii(), allocations.peak_bytes);
        // the pixels are whole, so that a decoder which passes the bomb over may show them
        assert!(result.is_ok_and(|image| image.rgb() == [0, 0, 0]), "{}", name.escape_ascii());
    }
}

#[test]
fn b3_truncated_files_of_every_format() {
    let _alone = alone();
    let mut jpeg = Vec::new();
    let rgb: Vec<u8> = (0..3 * 64 * 64u32).map(|i| (i * i % 251) as u8).collect();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 90);
    image::ImageEncoder::write_image(encoder, &rgb, 64, 64, image::ExtendedColorType::Rgb8).unwrap();
    assert!(Image::from_bytes(&jpeg).is_ok());
    match refused(&jpeg[..jpeg.len() - 128]) {
        Error::TruncatedImage { format, length, .. } => {
            assert_eq!((format, length), ("JPEG", jpeg.len() - 128))
        }
        other => panic!("{other}"),
    }
    for (name, bytes) in files() {
        // a picture may be whole before its file ends: what follows is metadata, padding or a second frame
        for missing in [bytes.len() / 2, bytes.len() * 3 / 4] {
            let cut = &bytes[..bytes.len() - missing];
            let (result, _) = count(|| Image::from_bytes(cut));
            assert!(result.is_err(), "{name} without its last {missing} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn b3_a_damaged_second_chunk() {
    let _alone = alone();
    let gamma = png(1, 1, &[chunk(b"gAMA", &[0, 0, 177, 143]), chunk(b"IDAT", &deflated_zeros(4, 0))]);
    for whole in [file("rgb png"), gamma] {
        assert!(Image::from_bytes(&whole).is_ok());
        // signature 8, header chunk 25; then length 4, name 4, data
        for at in [33 + 4, 33 + 8] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x20;
            match refused(&damaged) {
                Error::DamagedChunk { offset, found, computed, .. } => {
                    assert_eq!(offset, 33);
                    assert_ne!(found, computed);
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_palette_of_half_a_colour_is_refused() {
    let _alone = alone();
    let palette = png(1, 1, &[chunk(b"PLTE", &[1, 2, 3, 4]), chunk(b"IDAT", &deflated_zeros(4, 0))]);
    assert!(matches!(refused(&palette), Error::PaletteLength { length: 4, .. }));
    // more transparencies than colours are cut, as Pillow does
    let mut header = png(1, 1, &[])[..33].to_vec();
    header[25] = 3;
    let parts =
        [chunk(b"PLTE", &[9, 8, 7]), chunk(b"tRNS", &[255; 300]), chunk(b"IDAT", &deflated_zeros(2, 0))];
    let mut palette = [header, parts.concat(), chunk(b"IEND", b"")].concat();
    mend_checksums(&mut palette);
    match Image::from_bytes(&palette) {
        Ok(image) => assert_eq!(image.rgb(), [9, 8, 7]),
        Err(error) => assert!(matches!(error, Error::DecodeImage { .. }), "{error}"),
    }
}

#[test]
fn b3_what_is_no_picture_at_all() {
    let _alone = alone();
    assert!(matches!(refused(b""), Error::EmptyImage { .. }));
    match refused(b"Dear sir or madam,") {
        Error::UnknownImageFormat { head, .. } => assert_eq!(head, b"Dear sir"),
        other => panic!("{other}"),
    }
    for (text, expected) in [
        ("@@@@", "image in base64"),
        ("iVBORw0KGgo=", "image bytes: "),
        ("data:image/png;base64,@", "image in base64"),
        ("data:image/png,iVBORw0KGgo=", "data URL"),
        ("data:text/plain;base64,aGk=", "data URL"),
        ("data:", "data URL"),
        ("", "image bytes: empty"),
        ("da\u{e4}ta", "image in base64"),
    ] {
        let error = Image::from_base64(text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}

#[test]
fn base64_may_be_wrapped_unpadded_or_a_url() {
    let _alone = alone();
    let bytes = file("rgb png");
    let image = Image::from_bytes(&bytes).unwrap();
    let text = STANDARD.encode(&bytes);
    let lines: String = text.as_bytes().chunks(60).map(|l| format!("{}\r\n", l.escape_ascii())).collect();
    for form in [
        text.clone(),
        lines.clone(),
        text.trim_end_matches('=').to_owned(),
        format!("data:image/png;base64,{text}"),
        format!(" DATA:image/PNG;charset=x;BASE64,{lines}"),
    ] {
        assert_eq!(Image::from_base64(&form).unwrap(), image, "{form}");
    }
}

#[test]
fn errors_name_the_file_and_the_cause() {
    let _alone = alone();
    let dir = std::env::temp_dir().join(format!("vlm-pipeline-b3-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("broken.png");
    assert!(matches!(Image::open(&path), Err(Error::ReadImage { .. })));
    assert!(matches!(Image::open(&dir), Err(Error::ReadImage { .. })));
    std::fs::write(&path, &file("rgb png")[..60]).unwrap();
    let message = Image::open(&path).unwrap_err().to_string();
    assert!(message.contains("broken.png") && message.contains("truncated PNG"), "{message}");
    let small = Limits { max_file_bytes: 59, ..Limits::default() };
    assert!(matches!(Image::open_within(&path, &small), Err(Error::ImageFileTooLong { limit: 59, .. })));
    std::fs::remove_dir_all(dir).unwrap();
    assert!(matches!(Image::from_bytes_within(&[0; 60], &small), Err(Error::ImageFileTooLong { .. })));
    assert!(matches!(
        Image::from_rgb(2, 2, vec![0; 11]),
        Err(Error::RgbLength { expected: 12, actual: 11, .. })
    ));
    assert!(matches!(Image::from_rgb(0, 2, vec![]), Err(Error::RgbLength { .. })));
}

/// Decodes under small limits; whatever comes of it, the memory held stays within what the limits promise.
fn within_limits(bytes: &[u8]) -> Result<Image> {
    let limits = Limits { max_pixels: 1 << 16, max_side: 4096, ..Limits::default() };
    let (result, allocations) = count(|| Image::from_bytes_within(bytes, &limits));
    let promised = Limits::peak_bytes(limits.max_pixels, bytes.len() as u64);
    let held = allocations.peak_bytes as u64;
    assert!(
        held <= promised,
        "{held} of {promised} bytes held for {}",
        bytes[..bytes.len().min(200)].escape_ascii()
    );
    assert!(!matches!(result, Err(Error::DecoderPanicked { .. })), "{}", bytes.escape_ascii());
    if let Ok(image) = &result {
        assert!(limits.allow(u64::from(image.width()), u64::from(image.height())));
        assert_eq!(image.rgb().len() as u64, 3 * u64::from(image.width()) * u64::from(image.height()));
    }
    result
}

/// Sets every checksum of a PNG right, so that a mutation gets past them.
fn mend_checksums(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) =
        bytes.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
    {
        let end = at + 8 + length;
        if end + 4 > bytes.len() {
            break;
        }
        let crc = crc32(&bytes[at + 4..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_be_bytes());
        at = end + 4;
    }
}

/// How the formats begin, and nothing.
const MAGICS: &[&[u8]] = &[
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"RIFF\xff\xff\0\0WEBPVP8 ",
    b"RIFF\xff\xff\0\0WEBPVP8L",
    b"RIFF\xff\xff\0\0WEBPVP8X",
    b"GIF89a",
    b"GIF87a",
    b"BM",
    b"II*\0",
    b"MM\0*",
    b"II+\0",
    b"",
];

/// One change to a file; the first bytes tell the format and stay.
#[derive(Debug, Clone)]
enum Edit {
    Byte(u8),
    /// Four bytes alike: extreme lengths, counts and sizes.
    Word(u8),
    Remove(usize),
    Repeat(usize),
    Cut,
}

impl Arbitrary for Edit {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop_oneof![
            8 => any::<u8>().prop_map(Self::Byte),
            2 => prop::sample::select(&[0u8, 0x7f, 0x80, 0xff]).prop_map(Self::Word),
            1 => (1..40usize).prop_map(Self::Remove),
            1 => (1..40usize).prop_map(Self::Repeat),
            1 => Just(Self::Cut),
        ]
        .boxed()
    }
}

impl Edit {
    fn apply(self, bytes: &mut Vec<u8>, at: prop::sample::Index) {
        const KEPT: usize = 4;
        if bytes.len() <= KEPT {
            return;
        }
        let at = KEPT + at.index(bytes.len() - KEPT);
        let end = |length: usize| bytes.len().min(at + length);
        match self {
            Self::Byte(byte) => bytes[at] = byte,
            Self::Word(byte) => {
                let end = end(4);
                bytes[at..end].fill(byte);
            }
            Self::Remove(length) => {
                let end = end(length);
                bytes.drain(at..end);
            }
            Self::Repeat(length) => {
                let again = bytes[at..end(length)].to_vec();
                bytes.splice(at..at, again);
            }
            Self::Cut => bytes.truncate(at),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_never_panic_nor_exceed_their_limit(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<Edit>()), 1..6),
    ) {
        let _alone = alone();
        thread_local! { static FILES: Vec<(String, Vec<u8>)> = files(); }
        let mut bytes = FILES.with(|files| files[which.index(files.len())].1.clone());
        for (at, edit) in edits {
            edit.apply(&mut bytes, at);
        }
        if bytes.starts_with(b"\x89PNG") {
            mend_checksums(&mut bytes);
        }
        // only that it returns, and within its memory
        let _: Result<Image> = within_limits(&bytes);
    }

    #[test]
    fn arbitrary_bytes_never_panic_nor_exceed_their_limit(
        magic in prop::sample::select(MAGICS),
        tail in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _alone = alone();
        let _: Result<Image> = within_limits(&[magic, &tail].concat());
        let _: Result<(u32, u32)> = Image::size_of_bytes(&[magic, &tail].concat(), &Limits::default());
    }
}

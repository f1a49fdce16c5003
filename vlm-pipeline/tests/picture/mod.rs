//! The pictures of `reference/image_goldens.py`, made by the same integer formula, its way of hashing, and chunks of a PNG.
#![allow(dead_code, reason = "each test file uses a part of this")]

use sha2::{Digest, Sha256};
use vlm_pipeline::Image;

/// By `seed % 3`: waves with noise, noise alone, or black and white specks.
pub(crate) fn picture(width: u32, height: u32, seed: u32) -> Image {
    let mut rgb = Vec::with_capacity(3 * width as usize * height as usize);
    for y in 0..height {
        for x in 0..width {
            rgb.extend([0, 1, 2].map(|c| sample(x, y, c, seed)));
        }
    }
    Image::from_rgb(width, height, rgb).unwrap()
}

fn sample(x: u32, y: u32, c: u32, seed: u32) -> u8 {
    let mut h = x
        .wrapping_mul(0x9E37_79B1)
        .wrapping_add(y.wrapping_mul(0x85EB_CA77))
        .wrapping_add(c.wrapping_mul(0xC2B2_AE3D))
        .wrapping_add(seed.wrapping_mul(0x27D4_EB2F));
    h ^= h >> 15;
    h = h.wrapping_mul(0x2C1B_3C6D);
    h ^= h >> 12;
    match seed % 3 {
        0 => {
            let wave = (x * (c + 2) + y * (5 - c)) % 384;
            (wave.min(383 - wave) + (h & 63)) as u8
        }
        1 => (h >> 24) as u8,
        _ => 255 * (h >> 31) as u8,
    }
}

/// The first 16 hexadecimal digits of SHA-256.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of float32 values in little-endian order.
pub(crate) fn digest_f32(values: &[f32]) -> String {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(value.to_le_bytes());
    }
    hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The lines of a golden file, each cut at its spaces.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(' ').collect())
}

/// A chunk of a PNG: length, name, data, checksum.
pub(crate) fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let body = [name.as_slice(), data].concat();
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [length.as_slice(), &body, &crc32(&body).to_be_bytes()].concat()
}

/// The checksum of PNG, bit by bit.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 },
        )
    })
}

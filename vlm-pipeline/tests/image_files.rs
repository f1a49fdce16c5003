//! Files of every format, depth and orientation against what the reference reads from them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod picture;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use picture::chunk;
use serde_json::Value;
use vlm_pipeline::{Image, Limits, Plan, PreprocessorConfig};

struct File {
    name: String,
    base64: String,
    bytes: Vec<u8>,
    size: (u32, u32),
    /// Levels that lossy decoders may differ by.
    tolerance: u8,
    /// Every how many pixels `rgb` has one.
    step: u32,
    rgb: Vec<u8>,
}

fn files() -> Vec<File> {
    let entries: Vec<Value> = serde_json::from_str(include_str!("data/image_files.json")).unwrap();
    let number = |entry: &Value, key: &str| entry[key].as_u64().unwrap() as u32;
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    let file = |entry: &Value| File {
        name: text(entry, "name"),
        base64: text(entry, "base64"),
        bytes: STANDARD.decode(text(entry, "base64")).unwrap(),
        size: (number(entry, "width"), number(entry, "height")),
        tolerance: number(entry, "tolerance") as u8,
        step: entry.get("step").map_or(1, |step| step.as_u64().unwrap() as u32),
        rgb: from_hex(&text(entry, "rgb")),
    };
    entries.iter().map(file).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The largest difference in levels between a decoded picture and what is expected of it.
fn difference(image: &Image, file: &File) -> u8 {
    assert_eq!((image.width(), image.height()), file.size, "{}", file.name);
    let (half, step) = (file.step / 2, file.step);
    let mut worst = 0;
    let columns = file.size.0 / step;
    for (index, expected) in file.rgb.chunks_exact(3).enumerate() {
        let (x, y) = (index as u32 % columns, index as u32 / columns);
        let pixel = image.pixel(half + step * x, half + step * y).unwrap();
        worst = pixel.iter().zip(expected).map(|(a, b)| a.abs_diff(*b)).fold(worst, u8::max);
    }
    worst
}

fn check(selected: impl Fn(&str) -> bool) -> usize {
    let mut faults = Vec::new();
    let mut count = 0;
    for file in files().iter().filter(|file| selected(&file.name)) {
        count += 1;
        match Image::from_bytes(&file.bytes) {
            Ok(image) => {
                let worst = difference(&image, file);
                if worst > file.tolerance {
                    faults.push(format!("{}: {worst} levels, {} allowed", file.name, file.tolerance));
                }
                assert_eq!(Image::from_base64(&file.base64).unwrap(), image);
                assert_eq!(Image::size_of_bytes(&file.bytes, &Limits::default()).unwrap(), file.size);
            }
            Err(error) => faults.push(format!("{}: {error}", file.name)),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    count
}

#[test]
fn b1_every_orientation_of_every_format_is_undone() {
    assert_eq!(check(|name| name.starts_with("orientation")), 32);
}

#[test]
fn b1_broken_exif_counts_as_upright() {
    assert_eq!(check(|name| name.starts_with("broken exif")), 7);
}

#[test]
fn b2_alpha_and_depth() {
    let depths =
        |name: &str| ["grey", "rgb ", "rgba", "palette", "bilevel"].iter().any(|kind| name.starts_with(kind));
    assert!(check(depths) >= 30);
}

#[test]
fn b3_a_gif_and_a_webp_show_their_first_frame() {
    assert_eq!(check(|name| name.starts_with("two frames")), 2);
}

#[test]
fn every_file_is_read_as_the_reference_reads_it() {
    assert!(check(|_| true) > 80);
}

#[test]
fn b1_files_are_turned_as_bytes_are() {
    let dir = std::env::temp_dir().join(format!("vlm-pipeline-b1-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for file in files().iter().filter(|file| file.name.starts_with("orientation")) {
        // the name is of another format: only the content counts
        let path = dir.join("picture.bmp");
        std::fs::write(&path, &file.bytes).unwrap();
        let image = Image::open(&path).unwrap();
        assert_eq!(image, Image::from_bytes(&file.bytes).unwrap());
        assert_eq!(Image::size_of_file(&path, &Limits::default()).unwrap(), (image.width(), image.height()));
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// A PNG of one colour with the given EXIF block.
fn png_with_exif(width: u32, height: u32, rgb: &[u8], exif: &[u8]) -> Vec<u8> {
    use image::ImageEncoder;
    let mut plain = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut plain);
    encoder.write_image(rgb, width, height, image::ExtendedColorType::Rgb8).unwrap();
    let mut png = plain[..33].to_vec();
    png.extend(chunk(b"eXIf", exif));
    png.extend(&plain[33..]);
    png
}

#[test]
fn b1_orientation_6_turns_before_the_plan() {
    let six = [b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0".as_slice(), &[0; 4]].concat();
    let image = Image::from_bytes(&png_with_exif(2, 1, &[255, 0, 0, 0, 0, 255], &six)).unwrap();
    assert_eq!((image.width(), image.height(), image.rgb()), (1, 2, &[255, 0, 0, 0, 0, 255][..]));

    let wide = png_with_exif(1084, 820, &vec![9; 3 * 1084 * 820], &six);
    let image = Image::from_bytes(&wide).unwrap();
    let plan = Plan::new(image.width(), image.height(), &PreprocessorConfig::default()).unwrap();
    assert_eq!(plan, Plan::new(820, 1084, &PreprocessorConfig::default()).unwrap());
    assert_eq!(plan.grid.map(|grid| (grid.rows, grid.cols)), Some((3, 2)));
}

use super::*;

fn image() -> Image {
    Image::from_rgb(2, 3, (0..18).collect()).unwrap()
}

#[test]
fn pixels_are_rows_of_red_green_blue() {
    let image = image();
    assert_eq!(image.pixel(1, 2), Some([15, 16, 17]));
    assert_eq!((image.pixel(2, 0), image.pixel(0, 3)), (None, None));
    assert_eq!(format!("{image:?}"), "Image { width: 2, height: 3, .. }");
}

#[test]
fn the_content_hash_tells_size_and_pixels() {
    let hash = image().content_hash();
    assert_eq!(image().clone().content_hash(), hash);
    assert_ne!(Image::from_rgb(3, 2, image().rgb().to_vec()).unwrap().content_hash(), hash);
    assert_ne!(Image::from_rgb(2, 3, (1..19).collect()).unwrap().content_hash(), hash);
    // caches on disk rely on it: SHA-256 over width, height (4 bytes each, little-endian) and the pixels
    let hex: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "d40b2ba1f326bee6");
}

#[test]
fn every_orientation_maps_the_corners() {
    // a b     the picture as stored, and below as each orientation shows it
    // c d
    // e f
    let stored: Vec<u8> = b"abcdef".iter().flat_map(|&letter| [letter; 3]).collect();
    let expected = [
        (1, "ab cd ef"),
        (2, "ba dc fe"),
        (3, "fe dc ba"),
        (4, "ef cd ab"),
        (5, "ace bdf"),
        (6, "eca fdb"),
        (7, "fdb eca"),
        (8, "bdf ace"),
    ];
    for (orientation, rows) in expected {
        let (width, height, rgb) = exif::apply(orientation, 2, 3, stored.clone());
        assert_eq!((width, height), exif::turned(orientation, 2, 3));
        let letters: String = rgb.iter().step_by(3).map(|&byte| char::from(byte)).collect();
        assert_eq!(letters, rows.replace(' ', ""), "{orientation}");
        assert_eq!(width as usize, rows.find(' ').unwrap());
    }
}

#[test]
fn a_jpeg_must_reach_its_end() {
    let origin = Origin::Bytes;
    let check = |bytes: &[u8]| integrity::check(format::Format::Jpeg, bytes, &origin);
    // a segment may hold what looks like an end; coded data holds stuffed zeros, restarts and fill bytes
    let whole = [
        0xff, 0xd8, 0xff, 0xe1, 0, 4, 0xff, 0xd9, 0xff, 0xda, 0, 2, 7, 0xff, 0, 0xff, 0xd0, 9, 0xff, 0xff,
        0xd9,
    ];
    assert!(check(&whole).is_ok());
    for length in 0..whole.len() {
        assert!(matches!(check(&whole[..length]), Err(Error::TruncatedImage { .. })), "{length}");
    }
    // what follows the end does not matter
    assert!(check(&[&whole[..], b"more"].concat()).is_ok());
}

#[test]
fn checksums_are_those_of_png() {
    assert_eq!(integrity::crc32(&[b"IE", b"ND"]), 0xae42_6082);
    assert_eq!(integrity::crc32(&[b"123456789"]), 0xcbf4_3926);
}

//! From whatever samples a file holds to three 8-bit channels.
//!
//! * Grey becomes three equal channels.
//! * Transparency is laid over white: `out = round((c a + m (m - a)) / m)` with `m` the largest sample, so that a
//!   fully transparent pixel is white whatever colour it hides.
//! * 16 bits are scaled, `round(v / 257)`, never clipped; float samples are clamped to 0..=1 and scaled by 255.

use image::ColorType;

/// The 8-bit RGB pixels of `raw`, or `None` where the colour type is unknown here.
pub(super) fn to_rgb8(raw: Vec<u8>, colour: ColorType) -> Option<Vec<u8>> {
    Some(match colour {
        ColorType::Rgb8 => raw,
        ColorType::L8 => map::<1>(&raw, |[l]| [l; 3]),
        ColorType::La8 => map::<2>(&raw, |[l, a]| [over_white(l, a); 3]),
        ColorType::Rgba8 => map::<4>(&raw, |[r, g, b, a]| [r, g, b].map(|c| over_white(c, a))),
        ColorType::L16 => map::<2>(&raw, |l| [halve(u16::from_ne_bytes(l)); 3]),
        ColorType::La16 => map::<4>(&raw, |pixel| {
            let [l, a] = wide(pixel);
            [halve(over_white_wide(l, a)); 3]
        }),
        ColorType::Rgb16 => map::<6>(&raw, |pixel| wide(pixel).map(halve)),
        ColorType::Rgba16 => map::<8>(&raw, |pixel| {
            let [r, g, b, a] = wide(pixel);
            [r, g, b].map(|c| halve(over_white_wide(c, a)))
        }),
        ColorType::Rgb32F => map::<12>(&raw, |pixel| float(pixel).map(|c: f32| unit_to_byte(c))),
        ColorType::Rgba32F => map::<16>(&raw, |pixel| {
            let [r, g, b, a] = float(pixel);
            let a = a.clamp(0.0, 1.0);
            [r, g, b].map(|c: f32| unit_to_byte(c.clamp(0.0, 1.0) * a + (1.0 - a)))
        }),
        _ => return None,
    })
}

fn map<const N: usize>(raw: &[u8], pixel: impl Fn([u8; N]) -> [u8; 3]) -> Vec<u8> {
    let (pixels, _) = raw.as_chunks::<N>();
    let mut rgb = vec![0; 3 * pixels.len()];
    for (out, &samples) in rgb.as_chunks_mut().0.iter_mut().zip(pixels) {
        *out = pixel(samples);
    }
    rgb
}

/// A pixel's native-endian 16-bit samples.
fn wide<const N: usize, const M: usize>(pixel: [u8; N]) -> [u16; M] {
    std::array::from_fn(|i| u16::from_ne_bytes([pixel[2 * i], pixel[2 * i + 1]]))
}

/// A pixel's native-endian float samples.
fn float<const N: usize, const M: usize>(pixel: [u8; N]) -> [f32; M] {
    std::array::from_fn(|i| {
        f32::from_ne_bytes([pixel[4 * i], pixel[4 * i + 1], pixel[4 * i + 2], pixel[4 * i + 3]])
    })
}

/// 65,535 is 257 times 255, so that this reaches both ends exactly.
fn halve(sample: u16) -> u8 {
    ((u32::from(sample) + 128) / 257) as u8
}

fn unit_to_byte(sample: f32) -> u8 {
    // a NaN becomes 0
    (sample.clamp(0.0, 1.0) * 255.0).round() as u8
}

fn over_white(sample: u8, alpha: u8) -> u8 {
    let (c, a) = (u32::from(sample), u32::from(alpha));
    ((c * a + 255 * (255 - a) + 127) / 255) as u8
}

fn over_white_wide(sample: u16, alpha: u16) -> u16 {
    let (c, a) = (u64::from(sample), u64::from(alpha));
    ((c * a + 65_535 * (65_535 - a) + 32_767) / 65_535) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_depth_are_kept() {
        assert_eq!([0, 255, 256, 65_535].map(halve), [0, 1, 1, 255]);
        assert_eq!((halve(128), halve(129), halve(65_406), halve(65_407)), (0, 1, 254, 255));
        assert_eq!([f32::NAN, -1.0, 0.5, 2.0].map(unit_to_byte), [0, 0, 128, 255]);
    }

    #[test]
    fn alpha_is_laid_over_white_in_both_depths() {
        for sample in [0u8, 1, 127, 200, 255] {
            assert_eq!((over_white(sample, 0), over_white(sample, 255)), (255, sample));
            for alpha in 0..=255u8 {
                let exact = 255.0 + (f64::from(sample) - 255.0) * f64::from(alpha) / 255.0;
                assert!((f64::from(over_white(sample, alpha)) - exact).abs() <= 0.5);
                let wide = over_white_wide(u16::from(sample) * 257, u16::from(alpha) * 257);
                assert!((f64::from(wide) - exact * 257.0).abs() <= 0.5);
            }
        }
    }

    #[test]
    fn every_colour_type_gives_three_channels() {
        let wide = |samples: &[u16]| samples.iter().flat_map(|s| s.to_ne_bytes()).collect::<Vec<u8>>();
        let float = |samples: &[f32]| samples.iter().flat_map(|s| s.to_ne_bytes()).collect::<Vec<u8>>();
        let cases = [
            (ColorType::L8, vec![7], [7, 7, 7]),
            (ColorType::La8, vec![7, 0], [255, 255, 255]),
            (ColorType::Rgb8, vec![1, 2, 3], [1, 2, 3]),
            (ColorType::Rgba8, vec![255, 0, 0, 128], [255, 127, 127]),
            (ColorType::L16, wide(&[257 * 9]), [9, 9, 9]),
            (ColorType::La16, wide(&[0, 65_535]), [0, 0, 0]),
            (ColorType::Rgb16, wide(&[0, 65_535, 514]), [0, 255, 2]),
            (ColorType::Rgba16, wide(&[65_535, 0, 0, 128 * 257]), [255, 127, 127]),
            (ColorType::Rgb32F, float(&[0.0, 1.0, 0.2]), [0, 255, 51]),
            (ColorType::Rgba32F, float(&[1.0, 0.0, 0.0, 0.0]), [255, 255, 255]),
        ];
        for (colour, raw, expected) in cases {
            assert_eq!(to_rgb8(raw, colour).as_deref(), Some(&expected[..]), "{colour:?}");
        }
    }
}

use super::*;
use crate::slicing::DownsampleMode;

fn gradient(width: u32, height: u32) -> Image {
    let pixel = |i: u32| [(i % width % 256) as u8, (i / width % 256) as u8, (i % 251) as u8];
    Image::from_rgb(width, height, (0..width * height).flat_map(pixel).collect()).unwrap()
}

#[test]
fn a4_one_pixel_fills_the_whole_slice() {
    let image = Image::from_rgb(1, 1, vec![200, 100, 50]).unwrap();
    let prepared = preprocess(&image, &PreprocessorConfig::default()).unwrap();
    let [slice] = &prepared.slices[..] else { panic!("{} slices", prepared.slices.len()) };
    assert_eq!((slice.rows, slice.cols, slice.pixel_values.len()), (32, 32, 3 * 448 * 448));
    // a case of the field, given to six decimals
    let expected = [0.568627f32, -0.215686, -0.607843];
    for (channel, expected) in slice.pixel_values.chunks_exact(448 * 448).zip(expected) {
        assert!(channel.iter().all(|value| (value - expected).abs() < 1e-6));
    }
}

#[test]
fn patches_are_packed_row_by_row_of_their_pixels() {
    // a size that is not resized, so that every value is a byte of the picture
    let image = gradient(448, 448);
    let slice = preprocess(&image, &PreprocessorConfig::default()).unwrap().slices.remove(0);
    let value = |byte: u8| (byte as f32 / 255.0 - 0.5) / 0.5;
    let length = slice.rows * slice.cols * 14;
    for channel in 0..3 {
        for y in 0..14 {
            for (at, &packed) in
                slice.pixel_values[(channel * 14 + y) * length..][..length].iter().enumerate()
            {
                let (patch, x) = (at / 14, at % 14);
                let (row, col) = (patch / slice.cols, patch % slice.cols);
                let pixel = image.pixel((14 * col + x) as u32, (14 * row + y) as u32).unwrap();
                assert!((packed - value(pixel[channel])).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn a8_each_image_is_prepared_as_if_it_were_alone() {
    let config = PreprocessorConfig::default();
    let flat = |rgb: [u8; 3], w: u32, h: u32| Image::from_rgb(w, h, rgb.repeat((w * h) as usize)).unwrap();
    let images = [flat([255, 0, 0], 448, 448), flat([0, 0, 255], 448, 448), flat([0, 255, 0], 600, 400)];
    let prepared: Vec<Preprocessed> =
        images.iter().map(|image| preprocess(image, &config).unwrap()).collect();
    let pads: Vec<usize> = prepared.iter().map(|one| one.plan.total_pads()).collect();
    assert_eq!(pads, [64, 64, 196]);
    assert_ne!(prepared[0].slices, prepared[1].slices);
    for (image, one) in images.iter().zip(&prepared) {
        assert_eq!(&preprocess(image, &config).unwrap(), one);
    }
}

#[test]
fn slices_have_the_shapes_of_the_plan_in_both_modes() {
    for downsample_mode in [DownsampleMode::X16, DownsampleMode::X4] {
        let config = PreprocessorConfig { downsample_mode, ..Default::default() };
        let prepared = preprocess(&gradient(500, 300), &config).unwrap();
        let shapes: Vec<(usize, usize)> =
            prepared.slices.iter().map(|slice| (slice.rows, slice.cols)).collect();
        assert_eq!(shapes, prepared.plan.target_sizes());
    }
}

#[test]
fn concatenated_slices_stand_side_by_side() {
    let prepared = preprocess(&gradient(500, 900), &PreprocessorConfig::default()).unwrap();
    assert!(prepared.slices.len() > 2);
    let all = prepared.concatenated();
    let widths: Vec<usize> = prepared.slices.iter().map(|slice| slice.rows * slice.cols * 14).collect();
    let total: usize = widths.iter().sum();
    assert_eq!(all.len(), 3 * 14 * total);
    for line in 0..3 * 14 {
        let mut start = line * total;
        for (slice, &width) in prepared.slices.iter().zip(&widths) {
            assert_eq!(all[start..start + width], slice.pixel_values[line * width..][..width]);
            start += width;
        }
    }
}

#[test]
fn rescaling_and_normalising_can_be_turned_off() {
    let image = Image::from_rgb(1, 1, vec![200, 100, 50]).unwrap();
    let values = |config: &PreprocessorConfig| {
        let slice = preprocess(&image, config).unwrap().slices.remove(0);
        [0, 1, 2].map(|channel| slice.pixel_values[channel * 448 * 448])
    };
    let plain = PreprocessorConfig { do_rescale: false, do_normalize: false, ..Default::default() };
    assert_eq!(values(&plain), [200.0, 100.0, 50.0]);
    let rescaled = PreprocessorConfig { do_normalize: false, rescale_factor: 0.5, ..Default::default() };
    assert_eq!(values(&rescaled), [100.0, 50.0, 25.0]);
    let skewed = PreprocessorConfig {
        do_rescale: false,
        image_mean: [100.0, 0.0, 50.0],
        image_std: [10.0, 2.0, 4.0],
        ..Default::default()
    };
    assert_eq!(values(&skewed), [10.0, 50.0, 0.0]);
}

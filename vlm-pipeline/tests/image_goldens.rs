//! Plans, resized pictures and pixel values against the PIL image processor of transformers, by hash: equality is exact.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod picture;

use picture::{digest, digest_f32, lines, picture};
use vlm_pipeline::{Plan, PreprocessorConfig, preprocess, resize_bicubic};

fn config(mode: &str, max_slice_nums: u32) -> PreprocessorConfig {
    PreprocessorConfig { max_slice_nums, downsample_mode: mode.parse().unwrap(), ..Default::default() }
}

#[test]
fn plans_equal_the_processors() {
    let mut count = 0;
    for line in lines(include_str!("data/plans.txt")) {
        let number = |at: usize| line[at].parse::<u32>().unwrap();
        let mut config = config(line[2], number(3));
        config.slice_mode = number(4) == 1;
        let plan = Plan::new(number(0), number(1), &config).unwrap();
        let (rows, cols, slice_height, slice_width) =
            plan.grid.map_or((0, 0, 0, 0), |g| (g.rows, g.cols, g.slice.height / 14, g.slice.width / 14));
        let ours =
            [rows, cols, plan.overview.height / 14, plan.overview.width / 14, slice_height, slice_width];
        assert_eq!(ours.to_vec(), (5..11).map(number).collect::<Vec<_>>(), "{line:?}");
        count += 1;
    }
    assert!(count > 1800);
}

#[test]
fn a7_resized_pictures_equal_pillows_byte_for_byte() {
    let mut count = 0;
    for line in lines(include_str!("data/resize.txt")) {
        let number = |at: usize| line[at].parse::<u32>().unwrap();
        let image = picture(number(0), number(1), number(2));
        let resized = resize_bicubic(&image, number(3), number(4)).unwrap();
        assert_eq!(digest(resized.rgb()), line[5], "{line:?}");
        count += 1;
    }
    assert!(count > 100);
}

#[test]
fn pixel_values_equal_the_processors_bit_for_bit() {
    let mut count = 0;
    for line in lines(include_str!("data/pixel_values.txt")) {
        let number = |at: usize| line[at].parse::<u32>().unwrap();
        let image = picture(number(0), number(1), number(2));
        let prepared = preprocess(&image, &config(line[3], number(4))).unwrap();
        let slices = prepared.slices.iter().map(|slice| {
            assert_eq!(slice.pixel_values.len(), 3 * 14 * slice.rows * slice.cols * 14);
            format!("{},{},{}", slice.rows, slice.cols, digest_f32(&slice.pixel_values))
        });
        assert_eq!(slices.collect::<Vec<_>>(), line[5..], "{:?}", &line[..5]);
        count += 1;
    }
    assert!(count > 100);
}

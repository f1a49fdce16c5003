use proptest::prelude::*;

use super::*;

/// A row of grey pixels.
fn row(levels: &[u8]) -> Image {
    let rgb = levels.iter().flat_map(|&level| [level; 3]).collect();
    Image::from_rgb(levels.len() as u32, 1, rgb).unwrap()
}

fn reds(image: &Image) -> Vec<u8> {
    image.rgb().iter().step_by(3).copied().collect()
}

#[test]
fn a7_rows_are_resized_as_pillow_does() {
    let alternating: Vec<u8> = (0..16).map(|i| if i % 2 == 0 { 0 } else { 255 }).collect();
    let cases: [(&[u8], [u8; 4]); 3] = [
        (&[0, 0, 0, 0, 255, 255, 255, 255], [0, 17, 238, 255]),
        (&[0, 255], [0, 53, 202, 255]),
        (&alternating, [118, 129, 126, 137]),
    ];
    for (from, to) in cases {
        assert_eq!(reds(&resize_bicubic(&row(from), 4, 1).unwrap()), to);
        // a column likewise
        let column = Image::from_rgb(1, from.len() as u32, row(from).rgb().to_vec()).unwrap();
        assert_eq!(reds(&resize_bicubic(&column, 1, 4).unwrap()), to);
    }
}

#[test]
fn the_order_of_the_passes_is_pillows() {
    // the width loses 20: a height that loses 40 is still second, one that loses 41 comes first
    assert!(!vertical_first((100, 100), (80, 60)));
    assert!(vertical_first((100, 100), (80, 59)));
    assert!(vertical_first((100, 100), (101, 99)));
    assert!(!vertical_first((100, 100), (101, 100)));
    assert!(!vertical_first((100, 100), (101, 101)));
}

#[test]
fn the_same_size_is_a_copy_and_an_empty_one_an_error() {
    let image = row(&[1, 2, 3]);
    assert_eq!(resize_bicubic(&image, 3, 1).unwrap(), image);
    for (width, height) in [(0, 1), (3, 0)] {
        assert!(resize_bicubic(&image, width, height).is_err());
    }
}

#[test]
fn weights_sum_to_one_and_cannot_overflow() {
    for (from, to) in [(1, 1), (1, 448), (2, 5), (3, 2), (448, 1), (65_535, 56), (1000, 999), (7, 7000)] {
        for (start, weights) in Kernel::new(from, to).taps() {
            assert!(start + weights.len() <= from);
            let (sum, magnitude) =
                weights.iter().fold((0i64, 0i64), |(s, m), &w| (s + i64::from(w), m + i64::from(w.abs())));
            // each weight is rounded by at most a half
            assert!((sum - (1 << PRECISION_BITS)).abs() <= weights.len() as i64 / 2 + 1);
            assert!(255 * magnitude + i64::from(HALF) < i64::from(i32::MAX));
        }
    }
}

/// One axis in float64, without any rounding: the definition in the module's head, written out.
fn naive_axis(samples: &[f64], to: usize) -> Vec<f64> {
    let scale = samples.len() as f64 / to as f64;
    let stretch = scale.max(1.0);
    let output = |i: usize| {
        let centre = (i as f64 + 0.5) * scale;
        let first = (centre - 2.0 * stretch + 0.5).max(0.0).trunc();
        let last = (centre + 2.0 * stretch + 0.5).trunc().min(samples.len() as f64);
        let inside = |j: &usize| *j as f64 >= first && (*j as f64) < last;
        let weigh = |j: usize| bicubic((j as f64 + 0.5 - centre) / stretch);
        let total: f64 = (0..samples.len()).filter(inside).map(weigh).sum();
        (0..samples.len()).filter(inside).map(|j| weigh(j) * samples[j] / total).sum()
    };
    (0..to).map(output).collect()
}

/// Both axes in float64 with the clipping between them that bytes bring.
fn naive(image: &Image, width: usize, height: usize, channel: usize) -> Vec<f64> {
    let (w, h) = (image.width() as usize, image.height() as usize);
    let clip = |sample: f64| sample.clamp(0.0, 255.0);
    let mut grid: Vec<Vec<f64>> =
        (0..h).map(|y| (0..w).map(|x| f64::from(image.rgb()[3 * (y * w + x) + channel])).collect()).collect();
    let transpose = |grid: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
        (0..grid[0].len()).map(|x| grid.iter().map(|row| row[x]).collect()).collect()
    };
    let rows = |grid: Vec<Vec<f64>>, to: usize| -> Vec<Vec<f64>> {
        grid.iter().map(|row| naive_axis(row, to).into_iter().map(clip).collect()).collect()
    };
    if vertical_first((w, h), (width, height)) {
        grid = transpose(rows(transpose(grid), height));
        grid = rows(grid, width);
    } else {
        grid = rows(grid, width);
        grid = transpose(rows(transpose(grid), height));
    }
    grid.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_resize_is_within_a_level_of_float64(
        width in 1..24u32,
        height in 1..24u32,
        to_width in 1..40u32,
        to_height in 1..40u32,
        seed in any::<u64>(),
    ) {
        let byte = |i: u64| (seed.wrapping_add(i).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        let rgb = (0..u64::from(3 * width * height)).map(byte).collect();
        let image = Image::from_rgb(width, height, rgb).unwrap();
        let resized = resize_bicubic(&image, to_width, to_height).unwrap();
        for channel in 0..3 {
            let exact = naive(&image, to_width as usize, to_height as usize, channel);
            for (pixel, exact) in resized.rgb().chunks_exact(3).zip(exact) {
                // half a level of the last rounding, and up to 1.25 halves of the first one's
                prop_assert!((f64::from(pixel[channel]) - exact).abs() <= 1.2, "{} {exact}", pixel[channel]);
            }
        }
    }

    #[test]
    fn extreme_shapes_resize_without_panic(width in 1..2000u32, flip in any::<bool>(), to in 1..300u32) {
        let (w, h) = if flip { (1, width) } else { (width, 1) };
        let image = Image::from_rgb(w, h, vec![77; 3 * width as usize]).unwrap();
        let resized = resize_bicubic(&image, to, 301 - to).unwrap();
        // a flat picture stays flat
        prop_assert!(resized.rgb().iter().all(|&byte| byte == 77));
    }
}

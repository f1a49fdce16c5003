//! Several slices in one call: each equals itself alone, in both modes, whatever the grouping.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and shows its errors")]

mod common;

use common::{COMPANY, Golden, all_pixels, checkpoint, encode, in_mode, largest, options, slices};
use siglip2_tower::{Config, DownsampleMode, Grid, Slice, Tower, WindowBackend};

/// The error of `slices` run together against each run alone, relative to the largest magnitude of all.
fn company_error<B: WindowBackend>(device: &B, tower: &mut Tower<B>, slices: &[Slice<'_>]) -> f64 {
    let together = encode(tower, device, slices);
    let alone: Vec<f32> = slices.iter().flat_map(|slice| encode(tower, device, &[*slice])).collect();
    common::error(together.iter().copied(), &alone, largest(&alone))
}

fn slices_in_company_equal_themselves_alone<B: WindowBackend>(device: &B, user: &str) {
    for name in common::CASES {
        let golden = Golden::read(name);
        let checkpoint = checkpoint(&golden, &format!("company-{user}"));
        let pixels = all_pixels(&golden);
        let mut tower = Tower::load(device, &checkpoint, &golden.config, options(4096)).unwrap();
        let error = company_error(device, &mut tower, &slices(&golden, &pixels));
        println!("{name}: {error:.1e}");
        assert!(error <= COMPANY, "{name}: {error:.2e}");
    }
}

fn passes_and_score_blocks_of_any_size_give_the_same<B: WindowBackend>(device: &B, user: &str) {
    let golden = Golden::read("base");
    let checkpoint = checkpoint(&golden, &format!("passes-{user}"));
    let pixels = all_pixels(&golden);
    let slices = slices(&golden, &pixels);
    let mut whole = Tower::load(device, &checkpoint, &golden.config, options(4096)).unwrap();
    let whole = encode(&mut whole, device, &slices);
    let sum: usize = golden.grids.iter().map(|grid| grid.patches()).sum();
    for (max_patches, attention_rows) in
        [(1008, 256), (1039, 256), (1040, 100), (sum - 1, 1), (sum, 7), (sum, 100_000)]
    {
        let options = siglip2_tower::Options { max_patches, attention_rows, ..Default::default() };
        let mut tower = Tower::load(device, &checkpoint, &golden.config, options).unwrap();
        let error = common::error(encode(&mut tower, device, &slices), &whole, largest(&whole));
        assert!(error <= COMPANY, "{max_patches} {attention_rows}: {error:.2e}");
    }
}

fn a_repeated_call_gives_the_same_bits<B: WindowBackend>(device: &B, user: &str) {
    let golden = Golden::read("conv3");
    let checkpoint = checkpoint(&golden, &format!("repeated-{user}"));
    let pixels = all_pixels(&golden);
    let slices = slices(&golden, &pixels);
    let mut tower = Tower::load(device, &checkpoint, &golden.config, options(2048)).unwrap();
    let first = encode(&mut tower, device, &slices);
    encode(&mut tower, device, &slices[1..]);
    assert_eq!(encode(&mut tower, device, &slices), first);
    let mut beside = tower.share().unwrap();
    drop(tower);
    assert_eq!(encode(&mut beside, device, &slices), first);
}

fn no_slices_give_no_vectors<B: WindowBackend>(device: &B, user: &str) {
    let golden = Golden::read("twice");
    let mut tower =
        Tower::load(device, &checkpoint(&golden, &format!("none-{user}")), &golden.config, options(64))
            .unwrap();
    assert!(encode(&mut tower, device, &[]).is_empty());
}

/// A picture of one colour: (r, g, b) in [-1, 1], packed.
fn plain(config: &Config, grid: Grid, colour: [f32; 3]) -> Vec<f32> {
    let values = config.vision_config.patch_values() / 3 * grid.patches();
    colour.iter().flat_map(|value| std::iter::repeat_n(*value, values)).collect()
}

fn case_a8_neighbours_of_one_size_stay_apart_and_in_order<B: WindowBackend>(device: &B, user: &str) {
    let golden = Golden::read("base");
    let checkpoint = checkpoint(&golden, &format!("a8-{user}"));
    let (square, overview, part) = (Grid::from([32, 32]), Grid::from([28, 40]), Grid::from([36, 28]));
    let (red, blue, green) = ([1.0, -1.0, -1.0], [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]);
    let pictures = [(square, red), (square, blue), (overview, green), (part, green), (part, green)];
    let pixels = pictures.map(|(grid, colour)| plain(&golden.config, grid, colour));
    let slices: Vec<Slice<'_>> =
        pixels.iter().zip(pictures).map(|(pixel_values, (grid, _))| Slice { pixel_values, grid }).collect();

    // Every picture is a pass of its own: the same operations on the same shapes.
    let mut tower = Tower::load(device, &checkpoint, &golden.config, options(1120)).unwrap();
    let tokens: Vec<usize> = slices.iter().map(|slice| tower.tokens(&[*slice]).unwrap()).collect();
    assert_eq!(tokens, [64, 64, 70, 63, 63]);
    let together = encode(&mut tower, device, &slices);
    let alone: Vec<Vec<f32>> = slices.iter().map(|slice| encode(&mut tower, device, &[*slice])).collect();
    assert_eq!(together, alone.concat());
    assert_ne!(alone[0], alone[1]);
    assert_eq!(alone[3], alone[4]);

    // All pictures in one pass.
    let mut tower = Tower::load(device, &checkpoint, &golden.config, options(8192)).unwrap();
    let error = common::error(encode(&mut tower, device, &slices), &together, largest(&together));
    assert!(error <= COMPANY, "{error:.2e}");
    let mut swapped = slices.clone();
    swapped.swap(0, 1);
    let swapped = encode(&mut tower, device, &swapped);
    let expected = [&alone[1][..], &alone[0], &alone[2], &alone[3], &alone[4]].concat();
    let error = common::error(swapped, &expected, largest(&expected));
    assert!(error <= COMPANY, "{error:.2e}");
}

fn case_x3_the_mode_decides_the_tokens<B: WindowBackend>(device: &B, user: &str) {
    let golden = Golden::read("real_heads");
    let checkpoint = checkpoint(&golden, &format!("x3-{user}"));
    let load = |mode| Tower::load(device, &checkpoint, &golden.config, in_mode(mode, options(1300))).unwrap();
    let (mut few, mut many) = (load(DownsampleMode::X16), load(DownsampleMode::X4));
    assert_eq!((few.mode(), many.mode()), (DownsampleMode::X16, DownsampleMode::X4));

    let square = Grid::from([32, 32]);
    let pixel_values = common::pixels(&golden, 0);
    let slice = Slice { pixel_values: &pixel_values, grid: square };
    assert_eq!(encode(&mut few, device, &[slice]).len(), 64 * few.width());
    assert_eq!(encode(&mut many, device, &[slice]).len(), 256 * many.width());

    // 1084x820 in 4x mode: the overview of 504x392 pixels and six slices of 420x476.
    let (overview, part) = (Grid::from([28, 36]), Grid::from([34, 30]));
    let (overview_pixels, part_pixels) =
        (plain(&golden.config, overview, [0.5; 3]), plain(&golden.config, part, [0.1; 3]));
    let overview = Slice { pixel_values: &overview_pixels, grid: overview };
    let part = Slice { pixel_values: &part_pixels, grid: part };
    let slices = [overview, part, part, part, part, part, part];
    assert_eq!(many.tokens(&slices).unwrap(), 252 + 6 * 255);
    assert_eq!(encode(&mut many, device, &slices).len(), 1782 * many.width());
    assert!(matches!(few.tokens(&slices), Err(siglip2_tower::Error::Grid { slice: 1, .. })));
}

/// A module with every test on one device.
macro_rules! slice_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        slice_tests!(@each [$(#[$attribute])*] $module, $device,
            slices_in_company_equal_themselves_alone
            passes_and_score_blocks_of_any_size_give_the_same
            a_repeated_call_gives_the_same_bits
            no_slices_give_no_vectors
            case_a8_neighbours_of_one_size_stay_apart_and_in_order
            case_x3_the_mode_decides_the_tokens);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($name:ident)*) => {
        mod $module {
            $(slice_tests!(@one $attributes $module $name, $device);)*
        }
    };
    (@one [$(#[$attribute:meta])*] $module:ident $name:ident, $device:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            super::$name(&$device, stringify!($module));
        }
    };
}

slice_tests!(cpu, crate::common::device());

#[cfg(feature = "cuda")]
slice_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    crate::common::cuda()
);

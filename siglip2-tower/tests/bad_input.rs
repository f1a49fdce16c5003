//! Typed errors for everything that does not fit.

mod common;

use common::{Golden, checkpoint, device, options};
use fermi_blas::Matrix;
use siglip2_tower::{Error, Grid, Options, PositionTable, Slice, Tower};

#[test]
fn slices_that_do_not_fit() {
    let device = device();
    let golden = Golden::read("twice");
    let mut tower = Tower::load(&device, &checkpoint(&golden, "bad"), &golden.config, options(128)).unwrap();
    let pixels = vec![0.0; 3 * 14 * 14 * 1024];
    let mut encode = |rows: usize, columns: usize, values: usize| {
        let slice = Slice { pixel_values: &pixels[..values * 3 * 14 * 14], grid: Grid { rows, columns } };
        tower.encode(&[slice]).unwrap_err().to_string()
    };
    let divisible = "slice 0: a grid of 12 x 8 patches is not divisible by 8 x 8";
    assert_eq!(encode(12, 8, 96), divisible);
    assert!(encode(0, 8, 0).contains("a grid of 0 x 8 patches"));
    assert_eq!(encode(16, 16, 256), "slice 0 has 256 patches, the tower was loaded for 128 a pass");
    assert!(encode(1 << 40, 1 << 40, 0).contains("the tower was loaded for 128 a pass"));
    assert_eq!(encode(8, 8, 63), "slice 0 has 37044 pixel values, its grid needs 37632");
}

#[test]
fn an_output_that_does_not_fit() {
    let device = device();
    let golden = Golden::read("twice");
    let mut tower =
        Tower::load(&device, &checkpoint(&golden, "output"), &golden.config, options(64)).unwrap();
    let pixels = vec![0.0; 3 * 14 * 14 * 64];
    let slice = Slice { pixel_values: &pixels, grid: Grid { rows: 8, columns: 8 } };
    for (rows, columns) in [(0, 48), (2, 48), (1, 47)] {
        let mut output = Matrix::zeros(&device, rows, columns).unwrap();
        let error = tower.forward(&[slice], &mut (), output.view_mut()).unwrap_err();
        assert!(matches!(error, Error::Blas(fermi_blas::Error::Shape { operation: "Tower::forward", .. })));
    }
}

#[test]
fn options_that_do_not_fit() {
    let device = device();
    let golden = Golden::read("twice");
    let checkpoint = checkpoint(&golden, "options");
    let load = |options| Tower::load(&device, &checkpoint, &golden.config, options).map(|_| ()).unwrap_err();
    assert!(matches!(load(options(0)), Error::InvalidOption { option: "max_patches", value: 0, .. }));
    let table = PositionTable::new().with(vec![20]);
    let error = load(Options { position_table: table, ..options(64) });
    assert!(matches!(error, Error::PositionTable { patches: 1, largest: 20, side: 20, .. }));
}

#[test]
fn a_checkpoint_of_another_config() {
    let device = device();
    let golden = Golden::read("twice");
    let checkpoint = checkpoint(&golden, "other");
    let error = |change: fn(&mut siglip2_tower::Config)| {
        let mut config = golden.config.clone();
        change(&mut config);
        Tower::load(&device, &checkpoint, &config, options(64)).map(|_| ()).unwrap_err().to_string()
    };
    let missing = error(|config| config.vision_config.num_hidden_layers = 5);
    assert!(
        missing.ends_with("has no tensor model.vision_tower.encoder.layers.4.layer_norm1.weight"),
        "{missing}"
    );
    let shape = error(|config| config.vision_config.intermediate_size = 100);
    let expected = "mlp.fc1.weight has shape [168, 80], expected [100, 80]";
    assert!(shape.ends_with(expected), "{shape}");
    assert!(error(|config| config.vision_config.patch_size = 0).contains("vision_config.patch_size is 0"));
}

#[test]
fn values_that_are_not_finite_do_not_panic() {
    let device = device();
    let golden = Golden::read("twice");
    let mut tower = Tower::load(&device, &checkpoint(&golden, "nan"), &golden.config, options(128)).unwrap();
    let (bad, good) = (vec![f32::NAN; 3 * 14 * 14 * 64], common::pixels(&golden, 0));
    let bad = Slice { pixel_values: &bad, grid: Grid { rows: 8, columns: 8 } };
    let good = Slice { pixel_values: &good, grid: golden.grids[0] };
    let alone = common::encode(&mut tower, &device, &[good]);
    common::encode(&mut tower, &device, &[bad]);
    assert_eq!(common::encode(&mut tower, &device, &[good]), alone);
}

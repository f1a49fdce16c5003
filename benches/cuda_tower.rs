//! How long does one 448 x 448 picture take through the full-size tower, and where does the time go?
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_tower -- FOLDER
//! ```

use benches::card::{self, Outcome, REPETITIONS};
use fermi_blas::synthetic::{self, Distribution};
use fermi_blas::{Backend, Checkpoint, Matrix};
use siglip2_tower::{Config, Grid, Options, Slice, Tower};

fn main() -> Outcome {
    let device = card::open("The tower")?;
    let folder = card::model_folder()?;
    let config = Config::from_json(&std::fs::read(folder.join("config.json"))?)?;
    let options = Options { max_patches: 1_024, ..Options::default() };
    let mut tower = Tower::load(&device, &Checkpoint::open(folder)?, &config, options)?;
    let grid = Grid { rows: 32, columns: 32 };
    let count = grid.patches() * config.vision_config.patch_values();
    let pixels = synthetic::values("pixel_values.0", count, 0, Distribution { center: 0.0, scale: 1.0 });
    let slices = [Slice { pixel_values: &pixels, grid }];
    let mut output = Matrix::zeros(&device, 64, tower.width())?;
    let time = card::seconds(&device, REPETITIONS, 1, |_| {
        tower.forward(&slices, &mut (), output.view_mut()).map(|_| ())
    })?;
    let held = device.memory();
    card::line(format_args!(
        "\nOne 448 x 448 picture, 1,024 patches: {:.2} ms. Buffers: {:.3} GB.",
        1e3 * time,
        held.in_use as f64 / 1e9
    ));
    device.set_profiling(true);
    for _ in 0..REPETITIONS {
        tower.forward(&slices, &mut (), output.view_mut())?;
    }
    device.set_profiling(false);
    card::line(format_args!("\n{REPETITIONS} pictures by component:\n\n{}", device.profile()?));
    Ok(())
}

//! How long does one 448 x 448 picture take through the full-size tower on two threads?
//!
//! ```sh
//! cargo bench -p benches --bench tower
//! ```
//!
//! Random weights of the published sizes (548 M values, made once in the build folder); 1,024 patches in, 64 vectors out.
//! A profile of one pass by component is printed first.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use fermi_blas::synthetic::{self, Distribution};
use fermi_blas::{Checkpoint, CheckpointWriter, Cpu, Dtype, Matrix, Sharding, TensorSpec};
use siglip2_tower::{Config, Grid, Options, Slice, Tower};

const SEED: u64 = 1;

/// The published sizes of what the tower reads.
const CONFIG: &str = r#"{
    "insert_layer_id": 6,
    "vision_config": {
        "hidden_size": 1152, "intermediate_size": 4304, "num_attention_heads": 16, "num_hidden_layers": 27,
        "image_size": 980, "patch_size": 14, "num_channels": 3, "layer_norm_eps": 1e-06,
        "hidden_act": "gelu_pytorch_tanh"
    },
    "text_config": {"hidden_size": 1024}
}"#;

/// The random checkpoint, in bfloat16 as the published one, made unless it is there.
fn checkpoint(config: &Config) -> fermi_blas::Result<Checkpoint> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("full-tower-{SEED}"));
    if !folder.join("model.safetensors").exists() {
        let tensors = config.tensors();
        let specs = tensors.iter().map(|(name, shape)| TensorSpec::new(name, Dtype::BF16, shape));
        let mut writer = CheckpointWriter::create(&folder, specs, &BTreeMap::new(), Sharding::default())?;
        for (name, shape) in &tensors {
            writer.append(name, &synthetic::weight(name, shape, SEED))?;
        }
        writer.finish()?;
    }
    Checkpoint::open(folder)
}

fn tower(criterion: &mut Criterion) {
    let config = Config::from_json(CONFIG.as_bytes()).expect("the config is valid");
    let checkpoint = checkpoint(&config).expect("the checkpoint can be written");
    let device = Cpu::with_threads(2).expect("two threads");
    let options = Options { max_patches: 1024, ..Options::default() };
    let mut tower = Tower::load(&device, &checkpoint, &config, options).expect("the tower fits");
    let grid = Grid { rows: 32, columns: 32 };
    let uniform = Distribution { center: 0.0, scale: 1.0 };
    let count = grid.patches() * config.vision_config.patch_values();
    let pixel_values = synthetic::values("pixel_values.0", count, SEED, uniform);
    let slices = [Slice { pixel_values: &pixel_values, grid }];
    let mut output = Matrix::zeros(&device, 64, tower.width()).expect("the output fits");
    let mut pass = || {
        tower.forward(black_box(&slices), &mut (), output.view_mut()).expect("the pass runs");
    };
    pass();
    device.set_profiling(true);
    pass();
    device.set_profiling(false);
    eprintln!("{}", device.profile());

    let mut group = criterion.benchmark_group("tower");
    group.sample_size(10);
    group.bench_function("448x448", |bencher| bencher.iter(&mut pass));
    group.finish();
}

criterion_group!(benches, tower);
criterion_main!(benches);

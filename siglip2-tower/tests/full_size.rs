//! The tower at its published size against transformers: 27 layers of 1152, 548 M random values.
//!
//! ```sh
//! cargo test --release -p siglip2-tower --test full_size -- --ignored --nocapture
//! ```

mod common;

use std::time::Instant;

use common::{Golden, STAGE, checkpoint, device, encode, options, slices, trace};
use siglip2_tower::Tower;

#[test]
#[ignore = "writes a checkpoint of 1.1 GB, holds 2.4 GB and takes a minute"]
fn every_stage_of_the_full_tower_equals_the_reference() {
    let device = device();
    let golden = Golden::read("full_tower");
    let checkpoint = checkpoint(&golden, "full-size");
    let start = Instant::now();
    let mut tower = Tower::load(&device, &checkpoint, &golden.config, options(2160)).unwrap();
    println!("loaded in {:.2} s", start.elapsed().as_secs_f64());
    std::fs::remove_file(checkpoint.path()).unwrap();
    let pixels = common::all_pixels(&golden);
    let slices = slices(&golden, &pixels);
    let stages = trace(&mut tower, &device, &slices);
    assert_eq!(stages.len(), golden.stages.len());
    let mut failed = false;
    for (stage, sample) in stages.iter().zip(&golden.stages) {
        assert_eq!((stage.name.as_str(), [stage.rows, stage.columns]), (sample.name.as_str(), sample.shape));
        let values = stage.values.iter().copied().step_by(sample.stride);
        let error = common::error(values, &sample.values, sample.absmax);
        println!("{:20} error {error:.1e}, reference's own {:.1e}", sample.name, sample.noise);
        failed |= error > STAGE;
    }
    assert!(!failed, "a stage is further than {STAGE:e} from the reference");

    let alone: Vec<f32> = slices.iter().flat_map(|slice| encode(&mut tower, &device, &[*slice])).collect();
    let merger = stages.last().unwrap();
    let error = common::error(merger.values.iter().copied(), &alone, common::largest(&alone));
    println!("together against alone: {error:.1e}");
    assert!(error <= STAGE);

    encode(&mut tower, &device, &slices[..1]);
    for _ in 0..3 {
        let start = Instant::now();
        encode(&mut tower, &device, &slices[..1]);
        println!("one picture of 448 x 448: {:.2} s on 2 threads", start.elapsed().as_secs_f64());
    }
    device.set_profiling(true);
    encode(&mut tower, &device, &slices[..1]);
    println!("{}", device.profile());
}

//! Every stage of the tower against transformers, for every golden config.

mod common;

use common::{CASES, Golden, STAGE, checkpoint, device, options, slices, trace};
use siglip2_tower::Tower;

#[test]
fn every_stage_equals_the_reference() {
    let device = device();
    for name in CASES {
        let golden = Golden::read(name);
        let checkpoint = checkpoint(&golden, "goldens");
        let mut tower = Tower::load(&device, &checkpoint, &golden.config, options(4096)).unwrap();
        let pixels = common::all_pixels(&golden);
        let stages = trace(&mut tower, &device, &slices(&golden, &pixels));
        let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
        let expected: Vec<&str> = golden.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, expected, "{name}");
        for (stage, sample) in stages.iter().zip(&golden.stages) {
            assert_eq!([stage.rows, stage.columns], sample.shape, "{name} {}", sample.name);
            let values = stage.values.iter().copied().step_by(sample.stride);
            let error = common::error(values, &sample.values, sample.absmax);
            println!("{name:12} {:20} error {error:.1e}, reference's own {:.1e}", sample.name, sample.noise);
            assert!(error <= STAGE, "{name} {}: error {error:.2e}", sample.name);
        }
    }
}

//! Every stage of the tower against transformers, for every golden config and on every device.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and shows its errors")]

mod common;

use common::{CASES, Golden, STAGE, checkpoint, options, slices, trace};
use siglip2_tower::{Tower, WindowBackend};

fn every_stage_equals_the_reference<B: WindowBackend>(device: &B, cases: &[&str], user: &str) {
    for name in cases {
        let golden = Golden::read(name);
        let checkpoint = checkpoint(&golden, user);
        let mut tower = Tower::load(device, &checkpoint, &golden.config, options(4096)).unwrap();
        let pixels = common::all_pixels(&golden);
        let stages = trace(&mut tower, device, &slices(&golden, &pixels));
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

#[test]
fn every_stage_on_the_cpu() {
    every_stage_equals_the_reference(&common::device(), &CASES, "goldens");
}

#[cfg(feature = "emulated")]
#[test]
fn every_stage_on_the_emulated_device() {
    // The smallest config: the emulation takes its time.
    let device = fermi_blas::Emulated::emulated(fermi_blas::Order::Forward).unwrap();
    every_stage_equals_the_reference(&device, &["twice"], "goldens-emulated");
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn every_stage_on_cuda() {
    every_stage_equals_the_reference(&common::cuda(), &CASES, "goldens-cuda");
}

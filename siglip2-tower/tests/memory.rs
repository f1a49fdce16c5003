//! What a tower holds equals its plan.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{CASES, Golden, checkpoint, in_mode, options};
use siglip2_tower::{DownsampleMode, Tower, WindowBackend};

fn a_loaded_tower_holds_what_was_planned<B: WindowBackend>(device: &B, cases: &[&str], user: &str) {
    let before = device.memory().in_use;
    for name in cases {
        let golden = Golden::read(name);
        let checkpoint = checkpoint(&golden, user);
        for mode in [DownsampleMode::X16, DownsampleMode::X4] {
            let options = in_mode(mode, options(500));
            let plan = golden.config.memory_plan(&options).unwrap();
            let tower = Tower::load(device, &checkpoint, &golden.config, options).unwrap();
            let held = || device.memory().in_use - before;
            assert_eq!(held(), plan.total(), "{name} {mode}");
            let beside = tower.share().unwrap();
            assert_eq!(held(), plan.total() + plan.scratch, "{name} {mode}");
            drop((tower, beside));
            assert_eq!(held(), 0, "{name} {mode}");
        }
    }
}

#[test]
fn the_plan_on_the_cpu() {
    a_loaded_tower_holds_what_was_planned(&common::device(), &CASES, "memory");
}

#[cfg(feature = "emulated")]
#[test]
fn the_plan_on_the_emulated_device() {
    let device = fermi_blas::Emulated::emulated(fermi_blas::Order::Forward).unwrap();
    a_loaded_tower_holds_what_was_planned(&device, &CASES, "memory-emulated");
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_plan_on_cuda() {
    a_loaded_tower_holds_what_was_planned(&common::cuda(), &CASES, "memory-cuda");
}

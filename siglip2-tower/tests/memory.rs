//! What a tower holds equals its plan.

mod common;

use common::{CASES, Golden, checkpoint, in_mode, options};
use fermi_blas::{Backend, Cpu};
use siglip2_tower::{DownsampleMode, Tower};

#[test]
fn a_loaded_tower_holds_what_was_planned() {
    for name in CASES {
        let golden = Golden::read(name);
        let checkpoint = checkpoint(&golden, "memory");
        for mode in [DownsampleMode::X16, DownsampleMode::X4] {
            let device = Cpu::with_threads(1).unwrap();
            let options = in_mode(mode, options(500));
            let plan = golden.config.memory_plan(&options).unwrap();
            let tower = Tower::load(&device, &checkpoint, &golden.config, options).unwrap();
            assert_eq!(device.memory().in_use, plan.total(), "{name} {mode}");
            let beside = tower.share().unwrap();
            assert_eq!(device.memory().in_use, plan.total() + plan.scratch, "{name} {mode}");
            drop((tower, beside));
            assert_eq!(device.memory().in_use, 0, "{name} {mode}");
        }
    }
}

//! A pass allocates nothing of ours.

mod common;

use common::{Golden, checkpoint, options, slices};
use fermi_blas::testing::allocation::{CountingAllocator, count};
use fermi_blas::{Cpu, Matrix};
use siglip2_tower::Tower;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_pass_allocates_nothing() {
    for name in ["base", "twice_4x"] {
        let device = Cpu::with_threads(2).unwrap();
        let golden = Golden::read(name);
        let checkpoint = checkpoint(&golden, "allocation");
        let pixels = common::all_pixels(&golden);
        let slices = slices(&golden, &pixels);
        let mut tower = Tower::load(&device, &checkpoint, &golden.config, options(1040)).unwrap();
        let mut output = Matrix::zeros(&device, tower.tokens(&slices).unwrap(), tower.width()).unwrap();
        // The first pass gives the queues of the pool's threads their size. The second is run on the pool, so that no
        // thread outside needs a queue to hand it over.
        tower.forward(&slices, &mut (), output.view_mut()).unwrap();
        let allocations = device.install(|| {
            let (result, allocations) = count(|| tower.forward(&slices, &mut (), output.view_mut()));
            result.unwrap();
            allocations
        });
        assert_eq!(allocations.own, 0, "{name}: {allocations:?}");
    }
}

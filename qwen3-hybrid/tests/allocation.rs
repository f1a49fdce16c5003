//! After load a pass allocates nothing of our own. The counts are the process's, so this test stands alone.

#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod common;

use common::{Golden, backbone};
use fermi_blas::testing::allocation::{CountingAllocator, count};
use fermi_blas::{Precision, synthetic};
use qwen3_hybrid::{Input, Options, Sampler, Sampling};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_pass_allocates_nothing() {
    for (case, precision) in
        [("base", Precision::F32), ("grouped", Precision::Q8), ("real_heads", Precision::Bf16)]
    {
        let golden = Golden::open(case);
        let options =
            Options::default().precision(precision).context_length(256).prefill_chunk(64).attention_rows(48);
        let mut model = backbone("allocation", case, &golden, options);
        let ids = synthetic::token_ids("ids", 150, 1, model.config().vocab_size as u32);
        let sampling =
            Sampling { temperature: 0.7, top_k: 20, top_p: 0.9, min_p: 0.01, ..Sampling::default() };
        let mut sampler = Sampler::new(&sampling, model.config().vocab_size).unwrap();
        let mut sequence = model.sequence().unwrap();
        // The pool starts its threads with the first pass.
        model.prefill(&mut sequence, Input::Ids(&ids[..70])).unwrap();
        let (tokens, allocations) = count(|| {
            model.prefill(&mut sequence, Input::Ids(&ids[70..])).unwrap();
            let mut sum = 0;
            for _ in 0..4 {
                let greedy = model.greedy().unwrap();
                model.step(&mut sequence, greedy).unwrap();
                sum += model.choose(&mut sampler, &[]).unwrap();
            }
            sum
        });
        assert!(tokens > 0);
        assert_eq!(allocations.own, 0, "{case}: {allocations:?}");
        // The library packs operands into buffers of its own and keeps them from call to call.
        println!("{case}: the matrix product library: {allocations:?}");
    }
}

use proptest::prelude::*;

use super::{Sampler, Sampling};
use crate::Error;

const EDGE: [f32; 3] = [0.0, 100.0, 99.0];

fn choose(sampling: &Sampling, logits: &[f32]) -> crate::Result<u32> {
    Sampler::new(sampling, logits.len())?.choose(logits, &[])
}

fn sampled() -> Sampling {
    Sampling { temperature: 1.0, ..Sampling::default() }
}

/// How often each id is drawn in 20,000 tries.
fn shares(sampling: &Sampling, logits: &[f32], history: &[u32]) -> Vec<f64> {
    let mut sampler = Sampler::new(sampling, logits.len()).unwrap();
    let mut counts = vec![0; logits.len()];
    for _ in 0..20_000 {
        counts[sampler.choose(logits, history).unwrap() as usize] += 1;
    }
    counts.into_iter().map(|count| f64::from(count) / 20_000.0).collect()
}

fn near(actual: &[f64], expected: &[f64]) {
    for (actual, expected) in actual.iter().zip(expected) {
        // Five standard deviations of a share of 1/2 in 20,000 draws.
        assert!((actual - expected).abs() < 0.018, "{actual} {expected}");
    }
}

#[test]
fn e4_no_temperature_takes_the_largest() {
    for temperature in [0.0, 1e-8] {
        assert_eq!(choose(&Sampling { temperature, ..Sampling::default() }, &EDGE).unwrap(), 1);
    }
    assert_eq!(choose(&Sampling::default(), &[1.0, 3.0, 3.0]).unwrap(), 1, "the first of equals");
}

#[test]
fn e4_parameters_out_of_bounds_are_named() {
    for temperature in [f64::NAN, -1.0, f64::INFINITY] {
        let error = choose(&Sampling { temperature, ..Sampling::default() }, &EDGE).unwrap_err();
        assert!(matches!(error, Error::SamplingParameter { parameter: "temperature", .. }), "{error}");
    }
    for top_p in [1.5, -0.1, f64::NAN] {
        let error = choose(&Sampling { top_p, ..sampled() }, &EDGE).unwrap_err();
        assert!(matches!(error, Error::SamplingParameter { parameter: "top_p", .. }), "{error}");
    }
    for min_p in [1.5, -0.1, f64::NAN] {
        let error = choose(&Sampling { min_p, ..sampled() }, &EDGE).unwrap_err();
        assert!(matches!(error, Error::SamplingParameter { parameter: "min_p", .. }), "{error}");
    }
    for repetition_penalty in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = choose(&Sampling { repetition_penalty, ..sampled() }, &EDGE).unwrap_err();
        assert!(matches!(error, Error::SamplingParameter { parameter: "repetition_penalty", .. }), "{error}");
    }
}

#[test]
fn e4_top_p_zero_takes_the_largest() {
    for seed in 0..50 {
        assert_eq!(
            choose(&Sampling { top_p: 0.0, seed, temperature: 100.0, ..sampled() }, &EDGE).unwrap(),
            1
        );
    }
}

#[test]
fn e4_top_k_zero_and_beyond_the_vocabulary_are_no_limit() {
    let logits = [1.0, 0.5, 0.0, 0.2];
    let free = shares(&sampled(), &logits, &[]);
    assert!(free.iter().all(|share| *share > 0.1));
    for top_k in [0, 10_000_000] {
        assert_eq!(shares(&Sampling { top_k, ..sampled() }, &logits, &[]), free);
    }
}

#[test]
fn e4_logits_without_a_choice_are_errors() {
    for sampling in [Sampling::default(), sampled()] {
        assert!(matches!(choose(&sampling, &[0.0, f32::NAN, 1.0]), Err(Error::LogitNan)));
        assert!(matches!(choose(&sampling, &[f32::NEG_INFINITY; 3]), Err(Error::NoChoice)));
        assert!(matches!(choose(&sampling, &[]), Err(Error::NoChoice)));
        assert_eq!(choose(&sampling, &[f32::NEG_INFINITY, -5.0, f32::NEG_INFINITY]).unwrap(), 1);
        assert_eq!(choose(&sampling, &[0.0, f32::INFINITY, f32::INFINITY]).unwrap(), 1);
    }
    let mut sampler = Sampler::new(&sampled(), 3).unwrap();
    assert!(matches!(sampler.choose(&[0.0], &[]), Err(Error::LogitCount { expected: 3, actual: 1 })));
}

// The expected shares below follow from the definitions with probabilities written as logarithms.
#[test]
fn draws_follow_the_probabilities() {
    let logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
    near(&shares(&sampled(), &logits, &[]), &[0.5, 0.3, 0.2]);
    // Half the temperature squares the probabilities: 25, 9 and 4 of 38.
    let cold = Sampling { temperature: 0.5, ..sampled() };
    near(&shares(&cold, &logits, &[]), &[25.0 / 38.0, 9.0 / 38.0, 4.0 / 38.0]);
}

#[test]
fn filters_keep_what_the_reference_keeps() {
    let logits = [0.2f32.ln(), 0.5f32.ln(), 0.2f32.ln(), 0.1f32.ln()];
    let kept = |sampling: Sampling| {
        let shares = shares(&sampling, &logits, &[]);
        shares.iter().enumerate().filter(|(_, share)| **share > 0.0).map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(kept(Sampling { top_k: 1, ..sampled() }), [1]);
    assert_eq!(kept(Sampling { top_k: 2, ..sampled() }), [0, 1, 2], "equals of the least one stay");
    assert_eq!(kept(Sampling { top_p: 0.95, ..sampled() }), [0, 1, 2, 3]);
    assert_eq!(kept(Sampling { top_p: 0.85, ..sampled() }), [0, 1, 2]);
    assert_eq!(kept(Sampling { top_p: 0.65, ..sampled() }), [0, 1]);
    assert_eq!(kept(Sampling { top_p: 0.45, ..sampled() }), [1]);
    assert_eq!(kept(Sampling { min_p: 0.19, ..sampled() }), [0, 1, 2, 3]);
    assert_eq!(kept(Sampling { min_p: 0.39, ..sampled() }), [0, 1, 2]);
    assert_eq!(kept(Sampling { min_p: 0.41, ..sampled() }), [1]);
    assert_eq!(kept(Sampling { min_p: 1.0, ..sampled() }), [1]);
    // top-p counts probabilities among what top-k left: 5/9, 2/9, 2/9.
    assert_eq!(kept(Sampling { top_k: 3, top_p: 0.7, ..sampled() }), [0, 1]);
}

#[test]
fn repetition_is_penalized_once_and_by_sign() {
    let greedy = Sampling { repetition_penalty: 2.0, ..Sampling::default() };
    let mut sampler = Sampler::new(&greedy, 3).unwrap();
    assert!(!sampler.is_greedy());
    // 3 / 2 stays above 1.4 if it is divided once, however often the id occurred.
    assert_eq!(sampler.choose(&[3.0, 1.4, 0.0], &[0, 0, 0]).unwrap(), 0);
    assert_eq!(sampler.choose(&[3.0, 1.6, 0.0], &[0]).unwrap(), 1);
    assert_eq!(sampler.choose(&[-1.0, -1.9, -9.0], &[0]).unwrap(), 1);
    assert_eq!(sampler.choose(&[-1.0, -2.1, -9.0], &[0, 77]).unwrap(), 0, "foreign ids are passed over");
}

#[test]
fn a_seed_repeats_its_draws() {
    let logits: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin()).collect();
    let draws = |seed| {
        let mut sampler = Sampler::new(&Sampling { seed, ..sampled() }, logits.len()).unwrap();
        (0..32).map(|_| sampler.choose(&logits, &[]).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(draws(7), draws(7));
    assert_ne!(draws(7), draws(8));
}

/// Top-p as the reference writes it: sort, sum up from the least likely, drop while the sum is at most 1 - p.
fn naive_top_p(logits: &[f32], top_p: f64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    order.sort_by(|a, b| logits[*a as usize].total_cmp(&logits[*b as usize]).then(b.cmp(a)));
    let weights: Vec<f64> = order.iter().map(|id| f64::from(logits[*id as usize]).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let dropped = weights.iter().take_while(|weight| {
        sum += **weight;
        sum <= (1.0 - top_p) * total
    });
    let dropped = dropped.count().min(order.len() - 1);
    let mut kept = order.split_off(dropped);
    kept.sort_unstable();
    kept
}

proptest! {
    #[test]
    fn top_p_keeps_what_the_definition_keeps(
        logits in prop::collection::vec(-8.0f32..8.0, 1..200),
        top_p in 0.01f64..0.999,
    ) {
        let mut sampler = Sampler::new(&Sampling { top_p, ..sampled() }, logits.len()).unwrap();
        sampler.choose(&logits, &[]).unwrap();
        let mut kept: Vec<u32> = sampler.candidates.iter().map(|candidate| candidate.id).collect();
        kept.sort_unstable();
        // A sum that meets the bound within rounding may fall on either side.
        let either = [naive_top_p(&logits, top_p - 1e-9), naive_top_p(&logits, top_p + 1e-9)];
        prop_assert!(either.contains(&kept));
    }

    #[test]
    fn a_choice_is_an_id_of_the_vocabulary_or_an_error(
        logits in prop::collection::vec(prop::num::f32::ANY, 0..50),
        temperature in 0.0f64..3.0,
        top_k in 0usize..60,
        top_p in 0.0f64..=1.0,
        min_p in 0.0f64..=1.0,
        history in prop::collection::vec(0u32..60, 0..10),
    ) {
        let sampling = Sampling { temperature, top_k, top_p, min_p, repetition_penalty: 1.3, seed: 1 };
        let mut sampler = Sampler::new(&sampling, logits.len()).unwrap();
        if let Ok(id) = sampler.choose(&logits, &history) {
            prop_assert!(logits[id as usize] > f32::NEG_INFINITY);
        }
    }
}

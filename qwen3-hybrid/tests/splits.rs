//! A prompt cut anywhere, or fed token by token, equals the prompt in one piece; repeated runs equal each other (case D3).

#![allow(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod common;

use std::cell::RefCell;

use common::{CASES, Golden, LOGITS, MARGIN, backbone_on, difference};
use fermi_blas::{Checkpoint, Matrix, Precision, Recorder, synthetic};
use gdn_scan::ScanBackend;
use proptest::prelude::*;
use qwen3_hybrid::{Backbone, Input, LayerType, Options, Positions, Sequence};

const TOKENS: usize = 150;

fn options(prefill_chunk: usize, attention_rows: usize) -> Options {
    let options = Options::default().precision(Precision::F32).context_length(192);
    options.prefill_chunk(prefill_chunk).attention_rows(attention_rows)
}

fn load<B: ScanBackend>(device: &B, case: &str, prefill_chunk: usize, attention_rows: usize) -> Backbone<B> {
    let golden = Golden::open(case);
    backbone_on(device, "splits", case, &golden, options(prefill_chunk, attention_rows))
}

fn prompt<B: ScanBackend>(model: &Backbone<B>, tokens: usize) -> Vec<u32> {
    synthetic::token_ids("split prompt", tokens, 3, model.config().vocab_size as u32)
}

/// Logits of a prompt and of 12 greedy tokens after it.
struct Answer {
    ids: Vec<u32>,
    rows: Vec<Vec<f32>>,
}

fn read<B: ScanBackend>(model: &Backbone<B>) -> Vec<f32> {
    let mut row = vec![0.0; model.config().vocab_size];
    model.read_logits(&mut row).unwrap();
    row
}

fn answer<B: ScanBackend>(model: &mut Backbone<B>, sequence: &mut Sequence<B>) -> Answer {
    let mut answer = Answer { ids: Vec::new(), rows: Vec::new() };
    for _ in 0..12 {
        answer.rows.push(read(model));
        answer.ids.push(model.greedy().unwrap());
        model.step(sequence, *answer.ids.last().unwrap()).unwrap();
    }
    answer
}

fn run<B: ScanBackend>(model: &mut Backbone<B>, pieces: &[usize]) -> Answer {
    let ids = prompt(model, pieces.iter().sum());
    let mut sequence = model.sequence().unwrap();
    let mut rest = &ids[..];
    for piece in pieces {
        let (now, later) = rest.split_at(*piece);
        model.prefill(&mut sequence, Input::Ids(now)).unwrap();
        rest = later;
    }
    answer(model, &mut sequence)
}

/// The same in one piece while somebody looks, so that every row of every layer is computed.
fn observed<B: ScanBackend>(model: &mut Backbone<B>) -> Answer {
    let ids = prompt(model, TOKENS);
    let mut sequence = model.sequence().unwrap();
    let mut recorder = Recorder::new(model.device());
    model.forward(&mut sequence, Input::Ids(&ids), Positions::Last, &mut recorder).unwrap();
    let last = &recorder.stages[model.config().num_hidden_layers];
    assert_eq!((last.rows, last.columns), (TOKENS, model.config().hidden_size), "{}", last.name);
    answer(model, &mut sequence)
}

/// Logits within the tolerance and the same tokens, up to the first token that the reference itself is not sure of.
fn agree(what: &str, answer: &Answer, reference: &Answer) {
    for (step, (row, expected)) in answer.rows.iter().zip(&reference.rows).enumerate() {
        let error = difference(row, expected);
        assert!(error <= LOGITS, "{what} step {step}: {error:.1e}");
        let mut sorted = expected.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let largest = expected.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        if (sorted[0] - sorted[1]) / largest <= MARGIN {
            return;
        }
        assert_eq!(answer.ids[step], reference.ids[step], "{what} step {step}");
    }
}

fn any_split_of_every_config_equals_one_piece<B: ScanBackend>(device: &B) {
    let ones = [1; TOKENS];
    let splits: [&[usize]; 8] = [
        &[TOKENS],
        &[1, 149],
        &[149, 1],
        &[2, 1, 147],
        &[63, 64, 23],
        &[64, 65, 21],
        &[16, 15, 17, 102],
        &ones,
    ];
    for case in CASES {
        let mut whole = load(device, case, 192, 192);
        let reference = observed(&mut whole);
        for (chunk, rows) in [(192, 7), (64, 64), (50, 20), (5, 5), (1, 1)] {
            let mut model = load(device, case, chunk, rows);
            for pieces in splits {
                let what = format!("{case} chunk {chunk} rows {rows} pieces {pieces:?}");
                agree(&what, &run(&mut model, pieces), &reference);
            }
        }
    }
}

/// Every golden config ends with softmax attention; this one, cut short, with a delta net.
fn a_delta_net_at_the_end_leaves_out_what_nobody_reads<B: ScanBackend>(device: &B) {
    let golden = Golden::open("base");
    let mut config = common::config("base");
    config.layer_types.truncate(5);
    config.num_hidden_layers = 5;
    assert_eq!(config.layer_types[4], LayerType::LinearAttention);
    let folder = common::golden_checkpoint("short", "base", &golden);
    let checkpoint = Checkpoint::open(&folder.0).unwrap();
    let mut whole = Backbone::load(device, &checkpoint, &config, options(192, 192)).unwrap();
    let mut chunked = Backbone::load(device, &checkpoint, &config, options(64, 20)).unwrap();
    let reference = observed(&mut whole);
    agree("whole", &run(&mut whole, &[TOKENS]), &reference);
    agree("chunked", &run(&mut chunked, &[1, 100, 49]), &reference);
}

thread_local! {
    static MODELS: RefCell<Option<(Backbone, Backbone, Answer)>> = const { RefCell::new(None) };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn split_anywhere_equals_whole(mut cuts in prop::collection::vec(1..TOKENS, 0..6)) {
        cuts.extend([0, TOKENS]);
        cuts.sort_unstable();
        cuts.dedup();
        let pieces: Vec<usize> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        MODELS.with_borrow_mut(|models| {
            let (whole, chunked, reference) = models.get_or_insert_with(|| {
                let mut whole = load(&common::cpu(), "grouped", 192, 192);
                let reference = run(&mut whole, &[TOKENS]);
                (whole, load(&common::cpu(), "grouped", 33, 10), reference)
            });
            agree("whole", &run(whole, &pieces), reference);
            agree("chunked", &run(chunked, &pieces), reference);
        });
    }
}

fn d3_one_prompt_three_times_gives_the_same_answer<B: ScanBackend>(device: &B) {
    let mut model = load(device, "base", 64, 32);
    let mut reused = model.sequence().unwrap();
    for length in [1, 4, 63, 64, 65] {
        let ids = prompt(&model, length);
        let mut first: Option<(Vec<f32>, Vec<u32>)> = None;
        for max_tokens in [0, 1, 12] {
            reused.clear(device).unwrap();
            model.prefill(&mut reused, Input::Ids(&ids)).unwrap();
            let logits = read(&model);
            let answer = answer(&mut model, &mut reused);
            let (expected, tokens) = first.get_or_insert((logits.clone(), answer.ids.clone()));
            // The same operations on the same shapes: bit for bit.
            assert_eq!(*expected, logits, "length {length}");
            assert_eq!(tokens[..max_tokens], answer.ids[..max_tokens]);
        }
    }
}

fn d3_a_kept_copy_continues_as_the_original_did<B: ScanBackend>(device: &B) {
    let mut model = load(device, "conv3", 64, 32);
    let ids = prompt(&model, 130);
    let mut cold = model.sequence().unwrap();
    model.prefill(&mut cold, Input::Ids(&ids)).unwrap();
    let cold_logits = read(&model);
    let cold_answer = answer(&mut model, &mut cold);

    // A copy taken at a boundary of the prefill chunks sees the same shapes again.
    let mut prefix = model.sequence().unwrap();
    model.prefill(&mut prefix, Input::Ids(&ids[..64])).unwrap();
    let mut warm = prefix.try_clone(device).unwrap();
    assert_eq!((warm.len(), warm.room()), (64, 192 - 64));
    for _ in 0..3 {
        warm.copy_from(device, &prefix).unwrap();
        model.prefill(&mut warm, Input::Ids(&ids[64..])).unwrap();
        assert_eq!(read(&model), cold_logits);
        assert_eq!(answer(&mut model, &mut warm).ids, cold_answer.ids);
    }
    assert_eq!(prefix.len(), 64, "the original is untouched");
}

fn sequences_and_backbones_do_not_disturb_each_other<B: ScanBackend>(device: &B) {
    let mut model = load(device, "four_x", 64, 32);
    let mut twin = model.share().unwrap();
    let ids = prompt(&model, 90);
    let alone = run(&mut model, &[90]);
    let (mut a, mut b) = (model.sequence().unwrap(), model.sequence().unwrap());
    for (index, id) in ids.iter().enumerate() {
        model.prefill(&mut a, Input::Ids(&[*id])).unwrap();
        twin.prefill(&mut b, Input::Ids(&[ids[ids.len() - 1 - index]])).unwrap();
    }
    let answer = answer(&mut model, &mut a);
    agree("interleaved", &answer, &alone);
}

fn embeddings_and_a_mix_equal_their_ids<B: ScanBackend>(device: &B) {
    let mut model = load(device, "base", 20, 20);
    let (ids, width) = (prompt(&model, 70), model.config().hidden_size);
    let mut sequence = model.sequence().unwrap();
    model.prefill(&mut sequence, Input::Ids(&ids)).unwrap();
    let by_ids = read(&model);
    let mut recorder = Recorder::new(device);
    sequence.clear(device).unwrap();
    model.forward(&mut sequence, Input::Ids(&ids), Positions::None, &mut recorder).unwrap();
    let rows: Vec<f32> = recorder
        .stages
        .iter()
        .filter(|stage| stage.name == "embeddings")
        .flat_map(|stage| stage.values.clone())
        .collect();

    let all = Matrix::from_slice(device, 70, width, &rows).unwrap();
    let mut sequence = model.sequence().unwrap();
    model.prefill(&mut sequence, Input::Embeddings(all.view())).unwrap();
    assert_eq!(read(&model), by_ids);

    // Runs that cross the chunks' boundaries, their first and their last position.
    let replaced: Vec<usize> = [0, 1, 2, 5].into_iter().chain(17..43).chain([59, 60, 69]).collect();
    let given: Vec<f32> =
        replaced.iter().flat_map(|position| rows[position * width..][..width].to_vec()).collect();
    let given = Matrix::from_slice(device, replaced.len(), width, &given).unwrap();
    let mut others = ids.clone();
    replaced.iter().for_each(|position| others[*position] = 0);
    let mut sequence = model.sequence().unwrap();
    let mixed = Input::Mixed { ids: &others, positions: &replaced, embeddings: given.view() };
    model.prefill(&mut sequence, mixed).unwrap();
    assert_eq!(read(&model), by_ids);
}

/// A module with every test on one device.
macro_rules! split_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        split_tests!(@each [$(#[$attribute])*] $module, $device,
            any_split_of_every_config_equals_one_piece
            a_delta_net_at_the_end_leaves_out_what_nobody_reads
            d3_one_prompt_three_times_gives_the_same_answer
            d3_a_kept_copy_continues_as_the_original_did
            sequences_and_backbones_do_not_disturb_each_other
            embeddings_and_a_mix_equal_their_ids);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($name:ident)*) => {
        mod $module {
            $(split_tests!(@one $attributes $name, $device);)*
        }
    };
    (@one [$(#[$attribute:meta])*] $name:ident, $device:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            super::$name(&$device);
        }
    };
}

split_tests!(cpu, crate::common::cpu());

#[cfg(feature = "cuda")]
split_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    crate::common::cuda()
);

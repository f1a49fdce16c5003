//! The smoke battery and the needle: answers are right, and in float32 the reference's to the token (`reference/smoke.py`).

use std::collections::BTreeSet;

use examples::{Case, Haystack, bundled};
use fermi_blas::Precision;
use serde_json::Value;
use vlm_pipeline::{GenerateOptions, Options, Pipeline, VlmBackend};

use crate::program::{Program, folder, tiny};

/// Greedy tokens are compared where the reference's two best logits lie further apart than float32 sums in another order.
const LEAST_MARGIN: f64 = 1e-4;

fn load<B: VlmBackend>(device: &B, precision: Precision, context_length: usize) -> Pipeline<B> {
    Pipeline::load(device, tiny(""), Options { precision, context_length, ..Options::default() }).unwrap()
}

/// Runs the battery; every answer must be right. Returns how many tokens differ from the reference's.
fn differing_tokens<B: VlmBackend>(device: &B, precision: Precision) -> usize {
    let file = bundled("smoke/battery.json").unwrap();
    let cases = Case::read(&file).unwrap();
    let items: BTreeSet<_> = cases.iter().map(|case| case.item.as_str()).collect();
    assert_eq!(items.len(), 8, "{items:?}");
    let mut vlm = load(device, precision, 1024);
    let mut differing = 0;
    for case in &cases {
        let outcomes = case.run(&mut vlm, file.parent().unwrap()).unwrap();
        assert_eq!(outcomes.len(), case.turns.len());
        for (turn, outcome) in case.turns.iter().zip(&outcomes) {
            assert!(turn.expected.is_some() && !turn.tokens.is_empty());
            assert!(turn.margins.iter().all(|&margin| margin > LEAST_MARGIN), "{turn:?}");
            assert!(turn.accepts(outcome), "{}: {turn:?} gave {outcome:?}", case.item);
            differing += turn.differing_tokens(outcome);
        }
    }
    differing
}

fn the_battery_in_float32_gives_the_reference_s_tokens<B: VlmBackend>(device: &B) {
    assert_eq!(differing_tokens(device, Precision::F32), 0);
}

fn the_battery_in_eight_bits_gives_them_too<B: VlmBackend>(device: &B) {
    // No margin of the reference is so small that 8 bits would turn it.
    assert_eq!(differing_tokens(device, Precision::Q8), 0);
}

/// FNV-1a, 64 bits, over the ids as four little-endian bytes each.
fn fnv(ids: &[u32]) -> String {
    let bytes = ids.iter().flat_map(|id| id.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn needles_are_found_with_the_reference_s_tokens<B: VlmBackend>(device: &B) {
    let haystack = Haystack::read(&bundled("smoke/needle.json").unwrap()).unwrap();
    let longest = haystack.tiers.iter().map(|tier| tier.tokens).max().unwrap();
    assert_eq!(longest, 10_000);
    let mut vlm = load(device, Precision::F32, longest + 64);
    let options = GenerateOptions { max_new_tokens: Some(64), ..GenerateOptions::default() };
    for tier in &haystack.tiers {
        let prompt = haystack.prompt(vlm.prompt_builder().unwrap(), tier.tokens, &tier.code).unwrap();
        assert_eq!((prompt.ids.len(), fnv(&prompt.ids)), (tier.prompt_tokens, tier.prompt_hash.clone()));
        assert!(tier.answer.margins.iter().all(|&margin| margin > LEAST_MARGIN), "{tier:?}");
        let mut session = vlm.session();
        let generation = vlm.generate(&mut session, &prompt.ids, &[], &options).unwrap();
        let tokens: Vec<u32> = generation.map(Result::unwrap).collect();
        assert_eq!(tokens, tier.answer.tokens, "{}", tier.tokens);
        assert_eq!(vlm.prompt_builder().unwrap().tokenizer().decode(&tokens), tier.code);
    }
}

/// A module with the tests of the model on one device.
macro_rules! battery_tests {
    ($(#[$attribute:meta])* $module:ident, $device:expr) => {
        battery_tests!(@each [$(#[$attribute])*] $module, $device,
            the_battery_in_float32_gives_the_reference_s_tokens
            the_battery_in_eight_bits_gives_them_too
            needles_are_found_with_the_reference_s_tokens);
    };
    (@each $attributes:tt $module:ident, $device:expr, $($name:ident)*) => {
        mod $module {
            $(battery_tests!(@one $attributes $name, $device);)*
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

battery_tests!(cpu, fermi_blas::Cpu::new().unwrap());

#[cfg(feature = "cuda")]
battery_tests!(
    #[ignore = "needs an NVIDIA GPU"]
    cuda,
    fermi_blas::Cuda::new(0).unwrap()
);

#[test]
fn smoke_prints_a_table_and_all_is_right() {
    let said = Program::new("smoke").succeed();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("item") && lines[0].ends_with("seconds"), "{said}");
    let rows = &lines[2..lines.len() - 1];
    assert!(rows.len() > 30 && rows.iter().all(|row| row.contains("  yes  ")), "{said}");
    let total = format!("{0} of {0} answers are right.", rows.len());
    assert!(lines[lines.len() - 1].starts_with(&total), "{said}");
}

#[test]
fn smoke_answers_cases_of_a_file_and_tells_the_wrong_ones() {
    let folder = folder("cases");
    std::fs::copy(tiny("sample_hello.png"), folder.join("hello.png")).unwrap();
    let cases = r#"[
        {"item": "a", "turns": [{"images": ["hello.png"], "question": "What does the text say?", "expected": "HELLO"}]},
        {"item": "b", "turns": [{"question": "What is 3 + 4?"}, {"question": "What is 9 - 5?", "expected": "5"}]}
    ]"#;
    let file = folder.join("cases.json");
    std::fs::write(&file, cases).unwrap();
    let said = Program::new("smoke").option("--cases", &file).succeed();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["item"], &lines[0]["pass"]), (&"a".into(), &true.into()));
    assert_eq!((&lines[0]["answers"][0], &lines[1]["answers"][0]), (&"HELLO".into(), &"7".into()));
    assert_eq!((&lines[1]["answers"][1], &lines[1]["pass"]), (&"4".into(), &false.into()));
    std::fs::write(&file, "{}").unwrap();
    Program::new("smoke").option("--cases", &file).fail(1, &["cases.json", "not a list of cases"]);
}

#[test]
fn needle_finds_the_code_and_fails_where_it_cannot() {
    let found = Program::new("needle").args("--tokens 2000").succeed();
    assert!(found.contains("falcon-4821  falcon-4821  yes"), "{found}");
    // A word that the small checkpoint never saw as a code.
    let lost = Program::new("needle").args("--tokens 600 --code xylophone-zzz").run();
    assert_eq!(lost.status, Some(1), "{lost:?}");
    assert!(lost.stdout.contains("  NO  ") && lost.stderr.contains("1 of 1 codes are wrong"), "{lost:?}");
}

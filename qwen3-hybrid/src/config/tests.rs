use fermi_blas::Cpu;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Config, LayerType, TensorLayout};
use crate::{Backbone, Error, Options};

const BASE: &str = include_str!("../../tests/data/base.json");
const FULL: &str = include_str!("../../tests/data/full.json");
const TEXT_ONLY: &str = include_str!("../../tests/data/text_only.json");

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn read(value: &Value) -> crate::Result<Config> {
    Config::from_json(value.to_string().as_bytes())
}

/// The base config with one key of its text part changed; `null` removes it.
fn with(changes: &[(&str, Value)]) -> crate::Result<Config> {
    let mut value = json(BASE);
    for (key, change) in changes {
        let text = value["text_config"].as_object_mut().unwrap();
        if change.is_null() {
            text.remove(*key);
        } else {
            text.insert((*key).to_owned(), change.clone());
        }
    }
    read(&value)
}

#[test]
fn the_public_config_is_read() {
    let config = Config::from_json(FULL.as_bytes()).unwrap();
    assert_eq!((config.hidden_size, config.vocab_size, config.num_hidden_layers), (1024, 248_094, 24));
    assert_eq!(config.count(LayerType::FullAttention), 6);
    assert_eq!(config.layer_types[3], LayerType::FullAttention);
    assert_eq!((config.conv_dim(), config.rotary_dim(), config.query_dim()), (6144, 64, 2048));
    assert!(config.tie_word_embeddings);
    assert_eq!(config.layout, TensorLayout::LanguageModel);
    let values: usize = config.tensors().iter().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
    assert_eq!(values, 752_161_600);
}

#[test]
fn a_text_only_config_has_its_keys_at_the_top() {
    let config = Config::from_json(TEXT_ONLY.as_bytes()).unwrap();
    assert_eq!(config.layout, TensorLayout::Model);
    assert_eq!(config.tensors()[0].name, "model.embed_tokens.weight");
    assert_eq!(config.partial_rotary_factor, 0.5);
}

#[test]
fn d8_rotary_facts_may_stand_in_either_place_or_equal_in_both() {
    let rope = |theta: f64, factor: f64| json!({"rope_theta": theta, "partial_rotary_factor": factor});
    let inner = with(&[("rope_parameters", rope(1e6, 0.5))]).unwrap();
    assert_eq!((inner.rope_theta, inner.partial_rotary_factor), (1e6, 0.5));
    let outer = [
        ("rope_parameters", Value::Null),
        ("rope_theta", json!(1_000_000)),
        ("partial_rotary_factor", json!(0.5)),
    ];
    assert_eq!(with(&outer).unwrap(), inner);
    let both = [
        ("rope_parameters", rope(1e6, 0.5)),
        ("rope_theta", json!(1_000_000)),
        ("partial_rotary_factor", json!(0.5)),
    ];
    assert_eq!(with(&both).unwrap(), inner);
    let old_name = [("rope_parameters", Value::Null), ("rope_scaling", rope(1e6, 0.5))];
    assert_eq!(with(&old_name).unwrap(), inner);
}

#[test]
fn d8_unequal_or_missing_rotary_facts_name_the_key() {
    let rope = json!({"rope_theta": 1e6, "partial_rotary_factor": 0.5});
    let theta = with(&[("rope_parameters", rope.clone()), ("rope_theta", json!(1e7))]);
    let expected = Error::RopeConflict { key: "rope_theta", first: 1e6, second: 1e7 };
    assert_eq!(theta.unwrap_err().to_string(), expected.to_string());
    let factor = with(&[("rope_parameters", rope), ("partial_rotary_factor", json!(0.25))]);
    assert!(matches!(factor, Err(Error::RopeConflict { key: "partial_rotary_factor", .. })));
    let none = with(&[("rope_parameters", json!({"partial_rotary_factor": 0.25}))]).unwrap_err();
    assert!(matches!(&none, Error::MissingKey { key } if key == "rope_theta"), "{none}");
    let no_factor = with(&[("rope_parameters", json!({"rope_theta": 1e7}))]).unwrap();
    assert_eq!(no_factor.partial_rotary_factor, 0.25);
    let yarn = with(&[("rope_parameters", json!({"rope_theta": 1e7, "rope_type": "yarn"}))]).unwrap_err();
    assert_eq!(yarn.to_string(), "config.json: rope_parameters.rope_type = yarn is not supported");
}

#[test]
fn layers_follow_the_interval_when_they_are_not_listed() {
    let kinds = |config: Config| {
        config.layer_types.iter().map(|kind| *kind == LayerType::FullAttention).collect::<Vec<_>>()
    };
    let unlisted =
        |interval: Value| with(&[("layer_types", Value::Null), ("full_attention_interval", interval)]);
    assert_eq!(kinds(unlisted(json!(3)).unwrap()), [false, false, true, false, false, true]);
    assert_eq!(kinds(unlisted(Value::Null).unwrap()), [false, false, false, true, false, false]);
    assert!(matches!(unlisted(json!(0)), Err(Error::Size { value: 0, .. })));
    let short = with(&[("layer_types", json!(["full_attention"]))]);
    assert!(matches!(short, Err(Error::LayerCount { layer_types: 1, num_hidden_layers: 6 })));
    let unknown = with(&[("layer_types", json!(vec!["sliding_attention"; 6]))]).unwrap_err();
    assert!(unknown.to_string().contains("sliding_attention"), "{unknown}");
}

#[test]
fn a_head_is_tied_only_by_the_top_level() {
    let tied = |top: Value, text: Value| {
        let mut value = json(BASE);
        value["tie_word_embeddings"] = top;
        value["text_config"]["tie_word_embeddings"] = text;
        read(&value).unwrap()
    };
    assert!(!tied(Value::Null, json!(true)).tie_word_embeddings);
    assert!(tied(json!(true), json!(false)).tie_word_embeddings);
    let untied = tied(Value::Null, json!(true)).tensors();
    assert!(untied.iter().any(|tensor| tensor.name == "lm_head.weight"));
}

#[test]
fn what_cannot_be_run_is_named() {
    let cases = [
        (("hidden_act", json!("gelu")), "text_config.hidden_act = gelu is not supported"),
        (("attention_bias", json!(true)), "text_config.attention_bias = true is not supported"),
        (("attn_output_gate", json!(false)), "text_config.attn_output_gate = false is not supported"),
        (("hidden_size", json!(0)), "hidden_size is 0, must be in 1 ..= 1048576"),
        (("hidden_size", json!(-4)), "text_config.hidden_size is not a non-negative integer"),
        (("hidden_size", Value::Null), "text_config.hidden_size is missing"),
        (("vocab_size", json!("many")), "text_config.vocab_size is not a non-negative integer"),
        (("num_hidden_layers", json!(1_000_000)), "num_hidden_layers is 1000000, must be in 1 ..= 4096"),
        (("num_key_value_heads", json!(3)), "is 4, no multiple of num_key_value_heads (3)"),
        (("linear_num_key_heads", json!(4)), "is 2, no multiple of linear_num_key_heads (4)"),
        (("rms_norm_eps", json!(-1.0)), "rms_norm_eps is -1, must be in 0e0 ..= 1e0"),
        (("head_dim", json!(4)), "head_dim * partial_rotary_factor is 1, must be in 2 ..= 4"),
        (("head_dim", json!(12)), "head_dim * partial_rotary_factor is 3, no multiple of 2 (2)"),
    ];
    for (change, expected) in cases {
        let error = with(std::slice::from_ref(&change)).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{change:?}: {error}");
    }
    assert!(matches!(Config::from_json(b"{"), Err(Error::Json { .. })));
    assert!(matches!(Config::from_json(b"[]"), Err(Error::KeyType { .. })));
    let mut value = json(BASE);
    value["text_config"] = json!([]);
    assert!(matches!(read(&value), Err(Error::KeyType { .. })));
}

/// The place of every value in a document.
fn places(value: &Value, place: String, all: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    all.push(place.clone());
    children.into_iter().for_each(|(key, value)| places(value, format!("{place}/{key}"), all));
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0u64..70).prop_map(Value::from),
        (0u32..64).prop_map(|bits| Value::from(1u64 << bits)),
        any::<f64>().prop_map(Value::from),
        "[a-z_]{0,12}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["full_attention", 3])),
        Just(json!({"rope_theta": 0})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_config_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..5), full: bool) {
        let mut value = json(if full { FULL } else { BASE });
        for (index, change) in changes {
            let mut all = Vec::new();
            places(&value, String::new(), &mut all);
            let place: &String = index.get(&all);
            *value.pointer_mut(place).unwrap() = change;
        }
        if let Ok(config) = read(&value) {
            let device = Cpu::with_threads(1).unwrap();
            let options = Options::default().context_length(1 << 26).prefill_chunk(1 << 20);
            // Whatever passes the checks can be counted.
            if let Ok(plan) = Backbone::memory_plan(&device, &config, &options) {
                prop_assert!(plan.total() > 0);
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Config::from_json(&bytes).is_err());
    }
}

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Options;

/// The published config without what the tower does not read.
fn full() -> Value {
    json!({
        "model_type": "minicpmv4_6", "image_size": 1120, "insert_layer_id": 6, "drop_vision_last_layer": false,
        "vision_config": {
            "hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152, "image_size": 980, "intermediate_size": 4304,
            "layer_norm_eps": 1e-06, "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 27,
            "patch_size": 14
        },
        "text_config": {"hidden_size": 1024}
    })
}

fn parse(value: &Value) -> Result<Config> {
    Config::from_json(value.to_string().as_bytes())
}

fn with(path: &[&str], value: Value) -> Value {
    let mut config = full();
    let mut place = &mut config;
    for key in path {
        place = &mut place[*key];
    }
    *place = value;
    config
}

#[test]
fn the_published_config_has_the_published_tensors() {
    let config = parse(&full()).unwrap();
    assert_eq!(config.vision_config.positions_per_side(), 70);
    assert_eq!(config.vision_config.head_dim(), 72);
    let tensors = config.tensors();
    let values: usize = tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
    // Counted in the published list of tensors: those of model.vision_tower and model.merger.
    assert_eq!((tensors.len(), values), (459, 548_266_416));
    let shape = |name: &str| tensors.iter().find(|(other, _)| other == name).map(|(_, shape)| shape.clone());
    assert_eq!(shape("model.vision_tower.vit_merger.linear_1.weight"), Some(vec![17216, 4608]));
    assert_eq!(shape("model.merger.mlp.0.linear_2.weight"), Some(vec![1024, 4608]));
    assert_eq!(shape("model.vision_tower.embeddings.position_embedding.weight"), Some(vec![4900, 1152]));
    assert_eq!(shape("model.vision_tower.encoder.layers.26.mlp.fc1.bias"), Some(vec![4304]));
}

#[test]
fn keys_left_out_take_the_references_defaults() {
    let config = parse(&json!({"vision_config": {}, "text_config": {}})).unwrap();
    let expected = VisionConfig {
        hidden_size: 768,
        intermediate_size: 3072,
        num_hidden_layers: 12,
        num_attention_heads: 12,
        num_channels: 3,
        image_size: 224,
        patch_size: 16,
        hidden_act: Activation::GeluTanh,
        layer_norm_eps: 1e-6,
    };
    assert_eq!(config.vision_config, expected);
    assert_eq!(config.insert_layer_id, 6);
    assert_eq!(config.downsample_mode, DownsampleMode::X16);
    assert_eq!((config.merge_kernel_size, config.merger_times), ([2, 2], 1));
    assert_eq!(config.text_hidden_size, 4096);
}

#[test]
fn the_top_levels_insert_layer_counts() {
    let config = parse(&with(&["vision_config", "insert_layer_id"], json!(3))).unwrap();
    assert_eq!(config.insert_layer_id, 6);
}

#[test]
fn tokens_follow_the_mode_and_the_rounds() {
    let config = parse(&full()).unwrap();
    let grid = Grid::from([32, 32]);
    assert_eq!(config.tokens(grid, DownsampleMode::X16), 64);
    assert_eq!(config.tokens(grid, DownsampleMode::X4), 256);
    let twice = parse(&with(&["merger_times"], json!(2))).unwrap();
    assert_eq!(twice.divisor(DownsampleMode::X16), Grid { rows: 8, columns: 8 });
    assert_eq!(twice.divisor(DownsampleMode::X4), Grid { rows: 4, columns: 4 });
    let flat = parse(&with(&["merge_kernel_size"], json!([1, 4]))).unwrap();
    assert_eq!(flat.divisor(DownsampleMode::X16), Grid { rows: 2, columns: 8 });
}

#[test]
fn errors_name_the_key() {
    let cases = [
        (&["vision_config", "hidden_size"][..], json!(0), "vision_config.hidden_size is 0"),
        (&["vision_config", "hidden_size"], json!("big"), "vision_config.hidden_size is \"big\""),
        (&["vision_config", "hidden_size"], json!(1152.5), "vision_config.hidden_size is 1152.5"),
        (&["vision_config", "hidden_size"], json!(1150), "vision_config.hidden_size 1150 is not divisible"),
        (&["vision_config", "num_attention_heads"], json!(0), "vision_config.num_attention_heads is 0"),
        (&["vision_config", "num_attention_heads"], json!(7), "vision_config.num_attention_heads 7"),
        (&["vision_config", "num_hidden_layers"], json!(0), "vision_config.num_hidden_layers is 0"),
        (&["vision_config", "num_hidden_layers"], json!(6), "insert_layer_id 6 names none of the 6 layers"),
        (&["vision_config", "num_hidden_layers"], json!(1u64 << 60), "vision_config.num_hidden_layers is"),
        (&["vision_config", "intermediate_size"], json!(-1), "vision_config.intermediate_size is -1"),
        (&["vision_config", "image_size"], json!([980, 980]), "vision_config.image_size is [980, 980]"),
        (&["vision_config", "image_size"], json!(13), "vision_config.image_size / patch_size is 0"),
        (&["vision_config", "patch_size"], json!(null), "vision_config.patch_size is null"),
        (&["vision_config", "hidden_act"], json!("relu"), "vision_config.hidden_act is \"relu\""),
        (&["vision_config", "layer_norm_eps"], json!(0), "vision_config.layer_norm_eps is 0"),
        (&["vision_config", "layer_norm_eps"], json!(1e60), "vision_config.layer_norm_eps is"),
        (
            &["vision_config", "window_kernel_size"],
            json!([4, 4]),
            "vision_config.window_kernel_size is [4, 4]",
        ),
        (&["vision_config"], json!(null), "vision_config is null"),
        (&["text_config"], json!([]), "text_config is []"),
        (&["text_config", "hidden_size"], json!({}), "text_config.hidden_size is an object"),
        (&["merge_kernel_size"], json!([2]), "merge_kernel_size is [2]"),
        (&["merge_kernel_size"], json!([2, 3]), "merge_kernel_size is [2, 3]"),
        (&["merger_times"], json!(0), "merger_times is 0"),
        (&["merger_times"], json!(1000), "merger_times is 1000"),
        (&["downsample_mode"], json!("8x"), "downsample_mode is \"8x\""),
        (&["insert_layer_id"], json!(-1), "insert_layer_id is -1"),
    ];
    for (path, value, expected) in cases {
        let message = parse(&with(path, value)).unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} does not contain {expected:?}");
    }
    let missing = parse(&json!({"text_config": {}})).unwrap_err();
    assert_eq!(missing.to_string(), "the config has no vision_config");
    assert!(matches!(Config::from_json(b"{"), Err(Error::Json { .. })));
    assert!(matches!(parse(&json!([])), Err(Error::InvalidKey { key: "top level", .. })));
}

#[test]
fn a_missing_file_is_named() {
    let error = Config::read("no/such/folder").unwrap_err();
    assert_eq!(error.to_string(), "no/such/folder: cannot be read");
}

#[test]
fn without_the_window_merger_its_layer_does_not_matter() {
    let mut config = with(&["insert_layer_id"], json!(27));
    assert!(matches!(parse(&config), Err(Error::InsertLayer { insert_layer_id: 27, num_hidden_layers: 27 })));
    config["downsample_mode"] = json!("4x");
    let config = parse(&config).unwrap();
    let options = Options { downsample_mode: Some(DownsampleMode::X16), ..Options::default() };
    assert!(matches!(config.memory_plan(&options), Err(Error::InsertLayer { .. })));
    assert!(config.memory_plan(&Options::default()).is_ok());
}

#[test]
fn modes_have_names() {
    for (mode, name) in [(DownsampleMode::X16, "16x"), (DownsampleMode::X4, "4x")] {
        assert_eq!((mode.to_string().as_str(), name.parse::<DownsampleMode>().unwrap()), (name, mode));
    }
    assert!("2x".parse::<DownsampleMode>().is_err());
}

#[test]
fn options_have_limits() {
    let config = parse(&full()).unwrap();
    for (max_patches, attention_rows) in [(0, 1), (1, 0), (usize::MAX, 1), (1, usize::MAX)] {
        let options = Options { max_patches, attention_rows, ..Options::default() };
        assert!(matches!(config.memory_plan(&options), Err(Error::InvalidOption { .. })));
    }
    let options = Options { max_patches: 1 << 24, attention_rows: 1 << 24, ..Options::default() };
    assert!(config.memory_plan(&options).is_ok());
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u64..5000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        "[a-z0-9_]{0,12}".prop_map(Value::from),
        prop::collection::vec(0u64..6, 0..4).prop_map(Value::from),
        Just(json!({})),
    ]
}

proptest! {
    #[test]
    fn no_config_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 0..4)) {
        let keys: Vec<(&str, &str)> = [
            ("", "insert_layer_id"), ("", "merger_times"), ("", "merge_kernel_size"), ("", "downsample_mode"),
            ("", "vision_config"), ("", "text_config"), ("text_config", "hidden_size"),
        ]
        .into_iter()
        .chain([
            "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_channels",
            "image_size", "patch_size", "hidden_act", "layer_norm_eps", "window_kernel_size",
        ].map(|key| ("vision_config", key)))
        .collect();
        let mut value = full();
        for (key, change) in changes {
            let (section, key) = keys[key.index(keys.len())];
            let place = if section.is_empty() { &mut value } else { &mut value[section] };
            if let Some(place) = place.as_object_mut() {
                place.insert(key.to_owned(), change);
            }
        }
        if let Ok(config) = parse(&value) {
            let plan = config.memory_plan(&Options::default()).unwrap();
            prop_assert!(plan.total() > 0);
            prop_assert!(config.tensors().len() > 20);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Config::from_json(text.as_bytes());
    }
}

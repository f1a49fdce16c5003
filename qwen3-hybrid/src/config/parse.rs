//! Reading the keys of a config.json.

use serde_json::{Map, Value};

use super::rope::Rope;
use super::validate::MAX_LAYERS;
use super::{Config, LayerType, TensorLayout};
use crate::{Error, Result};

/// One object of the file, with the name that its keys get in errors.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    pub(super) keys: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    /// A key's full name.
    pub(super) fn key(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// A value; `null` counts as missing, as it does in the reference.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.keys.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &'static str) -> Error {
        Error::KeyType { key: self.key(key), expected }
    }

    pub(super) fn object(&self, key: &'a str) -> Result<Option<Section<'a>>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let keys = value.as_object().ok_or_else(|| self.wrong(key, "an object"))?;
        Ok(Some(Section { name: key, keys }))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>> {
        self.get(key).map(|value| value.as_f64().ok_or_else(|| self.wrong(key, "a number"))).transpose()
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.get(key).map(|value| value.as_str().ok_or_else(|| self.wrong(key, "a string"))).transpose()
    }

    fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.get(key).map(|value| value.as_bool().ok_or_else(|| self.wrong(key, "true or false"))).transpose()
    }

    fn size(&self, key: &str) -> Result<Option<usize>> {
        let size = |value: &Value| value.as_u64().and_then(|size| usize::try_from(size).ok());
        self.get(key)
            .map(|value| size(value).ok_or_else(|| self.wrong(key, "a non-negative integer")))
            .transpose()
    }

    fn required(&self, key: &str) -> Result<usize> {
        self.size(key)?.ok_or_else(|| Error::MissingKey { key: self.key(key) })
    }
}

pub(super) fn config(json: &Value) -> Result<Config> {
    let keys = json
        .as_object()
        .ok_or_else(|| Error::KeyType { key: "config.json".to_owned(), expected: "an object" })?;
    let file = Section { name: "", keys };
    let (text, layout) = match file.object("text_config")? {
        Some(text) => (text, TensorLayout::LanguageModel),
        None => (file, TensorLayout::Model),
    };
    check_supported(&text)?;
    let rope = Rope::read(&text)?;
    let hidden_size = text.required("hidden_size")?;
    let num_hidden_layers = text.required("num_hidden_layers")?;
    let num_attention_heads = text.required("num_attention_heads")?;
    Ok(Config {
        vocab_size: text.required("vocab_size")?,
        hidden_size,
        intermediate_size: text.required("intermediate_size")?,
        num_hidden_layers,
        num_attention_heads,
        num_key_value_heads: text.required("num_key_value_heads")?,
        head_dim: text.size("head_dim")?.unwrap_or(256),
        rms_norm_eps: text.number("rms_norm_eps")?.unwrap_or(1e-6) as f32,
        layer_types: layer_types(&text, num_hidden_layers)?,
        linear_conv_kernel_dim: text.size("linear_conv_kernel_dim")?.unwrap_or(4),
        linear_num_key_heads: text.size("linear_num_key_heads")?.unwrap_or(16),
        linear_num_value_heads: text.size("linear_num_value_heads")?.unwrap_or(32),
        linear_key_head_dim: text.size("linear_key_head_dim")?.unwrap_or(128),
        linear_value_head_dim: text.size("linear_value_head_dim")?.unwrap_or(128),
        rope_theta: rope.theta as f32,
        partial_rotary_factor: rope.partial_rotary_factor,
        tie_word_embeddings: file.flag("tie_word_embeddings")?.unwrap_or(false),
        max_position_embeddings: text.size("max_position_embeddings")?,
        layout,
    })
}

/// Fails on switches that would change the model in ways that are not built here.
fn check_supported(text: &Section<'_>) -> Result<()> {
    let unsupported =
        |key: &str, value: &str| Error::Unsupported { key: text.key(key), value: value.to_owned() };
    match text.text("hidden_act")? {
        None | Some("silu" | "swish") => {}
        Some(other) => return Err(unsupported("hidden_act", other)),
    }
    if text.flag("attention_bias")? == Some(true) {
        return Err(unsupported("attention_bias", "true"));
    }
    if text.flag("attn_output_gate")? == Some(false) {
        return Err(unsupported("attn_output_gate", "false"));
    }
    Ok(())
}

/// `layer_types`, or every `full_attention_interval`-th layer softmax attention.
fn layer_types(text: &Section<'_>, layers: usize) -> Result<Vec<LayerType>> {
    if layers > MAX_LAYERS {
        let key = text.key("num_hidden_layers");
        return Err(Error::Size { key, value: layers as u64, least: 1, most: MAX_LAYERS as u64 });
    }
    let Some(given) = text.get("layer_types") else {
        let interval = text.size("full_attention_interval")?.unwrap_or(4);
        if interval == 0 {
            let key = text.key("full_attention_interval");
            return Err(Error::Size { key, value: 0, least: 1, most: u64::MAX });
        }
        let kind = |index: usize| {
            if (index + 1).is_multiple_of(interval) {
                LayerType::FullAttention
            } else {
                LayerType::LinearAttention
            }
        };
        return Ok((0..layers).map(kind).collect());
    };
    let given = given.as_array().ok_or_else(|| text.wrong("layer_types", "an array"))?;
    if given.len() != layers {
        return Err(Error::LayerCount { layer_types: given.len(), num_hidden_layers: layers });
    }
    let kind = |value: &Value| match value.as_str() {
        Some("linear_attention") => Ok(LayerType::LinearAttention),
        Some("full_attention") => Ok(LayerType::FullAttention),
        Some(other) => Err(Error::Unsupported { key: text.key("layer_types"), value: other.to_owned() }),
        None => Err(text.wrong("layer_types", "an array of strings")),
    };
    given.iter().map(kind).collect()
}

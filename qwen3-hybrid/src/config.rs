//! What a checkpoint's config.json says of the backbone.

mod parse;
mod rope;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::path::Path;

use crate::{Error, Result};

/// What mixes tokens in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerType {
    /// Gated delta net: a recurrent state of fixed size.
    LinearAttention,
    /// Gated softmax attention over all earlier tokens.
    FullAttention,
}

/// Where the tensors of the backbone stand in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorLayout {
    /// `model.language_model.`: a checkpoint that sees too.
    LanguageModel,
    /// `model.`: a text-only checkpoint.
    Model,
}

impl TensorLayout {
    /// The prefix of every tensor but the head.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::LanguageModel => "model.language_model.",
            Self::Model => "model.",
        }
    }
}

/// Sizes and constants of a Qwen3.5 text backbone, named by the keys of config.json.
///
/// A config can only be had from JSON, which is checked: every size is at least 1 and bounded, and what must divide does.
///
/// # Source
/// `Qwen3_5TextConfig` and `MiniCPMV4_6Config` of transformers 5.24.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Token ids.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the MLP.
    pub intermediate_size: usize,
    /// Layers; as many as `layer_types`.
    pub num_hidden_layers: usize,
    /// Query heads of softmax attention.
    pub num_attention_heads: usize,
    /// Key and value heads of softmax attention; divides `num_attention_heads`.
    pub num_key_value_heads: usize,
    /// Width of a softmax head.
    pub head_dim: usize,
    /// Added to the mean square in every norm.
    pub rms_norm_eps: f32,
    /// What each layer is.
    pub layer_types: Vec<LayerType>,
    /// Taps of the causal convolution.
    pub linear_conv_kernel_dim: usize,
    /// Query and key heads of the delta net; divides `linear_num_value_heads`.
    pub linear_num_key_heads: usize,
    /// Value heads of the delta net.
    pub linear_num_value_heads: usize,
    /// Width of a delta-net query or key head.
    pub linear_key_head_dim: usize,
    /// Width of a delta-net value head.
    pub linear_value_head_dim: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f32,
    /// Part of a head that rotates.
    pub partial_rotary_factor: f64,
    /// Whether the head is the embedding table.
    pub tie_word_embeddings: bool,
    /// Positions that the model was trained for, if the file says so. Nothing here depends on it.
    pub max_position_embeddings: Option<usize>,
    /// Where the checkpoint keeps the backbone.
    pub layout: TensorLayout,
}

impl Config {
    /// The backbone's part of a config.json: `text_config` inside a vision-language config, or a text-only config.
    ///
    /// `rope_theta` and `partial_rotary_factor` may stand in `rope_parameters` (or its old name `rope_scaling`), at the top
    /// of the text config, or in both if they are equal. `tie_word_embeddings` counts at the top level of the file only, as
    /// in the reference.
    ///
    /// # Errors
    /// [`Error::Json`], or one that names the key: [`Error::MissingKey`], [`Error::KeyType`], [`Error::Size`],
    /// [`Error::Indivisible`], [`Error::LayerCount`], [`Error::Unsupported`], [`Error::RopeConflict`].
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let json = serde_json::from_slice(json).map_err(|source| Error::Json { source })?;
        let config = parse::config(&json)?;
        config.validate()?;
        Ok(config)
    }

    /// [`Config::from_json`] of a config.json, or of the one in a checkpoint's folder.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, else as [`Config::from_json`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let path = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
        let json = std::fs::read(&path).map_err(|source| Error::Io { path, source })?;
        Self::from_json(&json)
    }

    /// Dimensions of a head that rotate: `head_dim * partial_rotary_factor`, rounded down.
    pub fn rotary_dim(&self) -> usize {
        (self.head_dim as f64 * self.partial_rotary_factor) as usize
    }

    /// Width of all queries of a softmax layer.
    pub fn query_dim(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all keys, and of all values, of a softmax layer.
    pub fn key_value_dim(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    /// Width of all keys of a delta-net layer.
    pub fn linear_key_dim(&self) -> usize {
        self.linear_num_key_heads * self.linear_key_head_dim
    }

    /// Width of all values of a delta-net layer.
    pub fn linear_value_dim(&self) -> usize {
        self.linear_num_value_heads * self.linear_value_head_dim
    }

    /// Channels of a delta-net layer's convolution: queries, keys, values.
    pub fn conv_dim(&self) -> usize {
        2 * self.linear_key_dim() + self.linear_value_dim()
    }

    /// Layers of one kind.
    pub fn count(&self, kind: LayerType) -> usize {
        self.layer_types.iter().filter(|layer| **layer == kind).count()
    }
}

impl fmt::Display for LayerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LinearAttention => "linear_attention",
            Self::FullAttention => "full_attention",
        })
    }
}

//! The one error type of the crate.

use std::path::PathBuf;

/// What can go wrong when a backbone is described, loaded, run or sampled from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A device, a product or a checkpoint failed.
    #[error(transparent)]
    Blas(#[from] fermi_blas::Error),
    /// The delta rule failed.
    #[error(transparent)]
    Scan(#[from] gdn_scan::Error),
    /// A file could not be read.
    #[error("{path}: cannot be read", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's report.
        source: std::io::Error,
    },
    /// A config is not JSON.
    #[error("config.json: not valid JSON")]
    Json {
        /// The parser's report.
        source: serde_json::Error,
    },
    /// A config lacks a key that nothing can stand in for.
    #[error("config.json: {key} is missing")]
    MissingKey {
        /// The key.
        key: String,
    },
    /// A config's value has the wrong type.
    #[error("config.json: {key} is not {expected}")]
    KeyType {
        /// The key.
        key: String,
        /// The type that it should have.
        expected: &'static str,
    },
    /// A config's size is outside its bounds.
    #[error("config.json: {key} is {value}, must be in {least} ..= {most}")]
    Size {
        /// The key.
        key: String,
        /// Its value.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most that is possible.
        most: u64,
    },
    /// A config's number is outside its bounds.
    #[error("config.json: {key} is {value}, must be in {least:e} ..= {most:e}")]
    Number {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f64,
        /// The least that is possible.
        least: f64,
        /// The most that is possible.
        most: f64,
    },
    /// A config's size is no multiple of what must divide it.
    #[error("config.json: {key} is {value}, no multiple of {by} ({divisor})")]
    Indivisible {
        /// The key.
        key: &'static str,
        /// Its value.
        value: usize,
        /// What must divide it.
        by: &'static str,
        /// The value of that.
        divisor: usize,
    },
    /// The list of layers has another length than the number of layers.
    #[error("config.json: layer_types has {layer_types} entries, num_hidden_layers is {num_hidden_layers}")]
    LayerCount {
        /// Entries of the list.
        layer_types: usize,
        /// Layers of the model.
        num_hidden_layers: usize,
    },
    /// A config asks for a kind of model that is not built here.
    #[error("config.json: {key} = {value} is not supported")]
    Unsupported {
        /// The key.
        key: String,
        /// Its value.
        value: String,
    },
    /// A rotary fact stands in two places with two values.
    #[error("config.json: {key} is given twice, as {first} and as {second}")]
    RopeConflict {
        /// The key.
        key: &'static str,
        /// The value in `rope_parameters`.
        first: f64,
        /// The other value.
        second: f64,
    },
    /// A load option is outside its bounds.
    #[error("option {option} is {value}, must be in 1 ..= {most}")]
    LoadOption {
        /// The option.
        option: &'static str,
        /// Its value.
        value: usize,
        /// The most that is possible.
        most: usize,
    },
    /// A pass over no tokens was asked for.
    #[error("the input holds no tokens")]
    EmptyInput,
    /// A token id is not in the vocabulary.
    #[error("id {id} at position {position} of the input is outside a vocabulary of {vocab_size}")]
    Vocabulary {
        /// The id.
        id: u32,
        /// Where it stands in the input.
        position: usize,
        /// Ids of the vocabulary.
        vocab_size: usize,
    },
    /// A sequence would outgrow its memory.
    #[error("{needed} tokens do not fit a context of {context_length}")]
    ContextOverflow {
        /// Tokens of the history and the input together.
        needed: usize,
        /// Tokens that the sequence has room for.
        context_length: usize,
    },
    /// Embeddings do not fit the input that they stand in.
    #[error("embeddings: {axis} is {actual}, expected {expected}")]
    Embeddings {
        /// `rows` or `width`.
        axis: &'static str,
        /// The size that would fit.
        expected: usize,
        /// The size that was given.
        actual: usize,
    },
    /// A position that embeddings should replace is outside the input, or not above the one before it.
    #[error("embedding {index} goes to position {position}: positions must ascend and stay below {tokens}")]
    EmbeddingPosition {
        /// Which of the embeddings.
        index: usize,
        /// The position given for it.
        position: usize,
        /// Tokens of the input.
        tokens: usize,
    },
    /// A sequence was made for a model of other sizes.
    #[error("the sequence belongs to a model of other sizes")]
    ForeignSequence,
    /// A pass over a sequence failed halfway, so its layers are at different token counts.
    #[error("a pass over the sequence failed halfway: clear it or copy another over it")]
    BrokenSequence,
    /// A sampling parameter is outside its bounds.
    #[error("sampling: {parameter} is {value}, must be {expected}")]
    SamplingParameter {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// There are more or fewer logits than the sampler's vocabulary has ids.
    #[error("{actual} logits for a sampler of {expected} ids")]
    LogitCount {
        /// Ids of the sampler's vocabulary.
        expected: usize,
        /// Logits that were given.
        actual: usize,
    },
    /// The logits hold a NaN.
    #[error("the logits hold a NaN")]
    LogitNan,
    /// No logit is larger than minus infinity.
    #[error("no logit is finite: nothing can be chosen")]
    NoChoice,
    /// On the device: the logits hold a NaN or nothing larger than minus infinity.
    #[error("the logits hold a NaN or nothing finite: no greedy choice")]
    NoGreedyChoice,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

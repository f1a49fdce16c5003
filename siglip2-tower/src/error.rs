//! The one error type of the crate.

use std::path::PathBuf;

/// What can go wrong in reading a config, loading a tower and running it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Buffers, products or the checkpoint.
    #[error(transparent)]
    Blas(#[from] fermi_blas::Error),
    /// A file could not be read.
    #[error("{path}: cannot be read", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's report.
        source: std::io::Error,
    },
    /// A config is not JSON.
    #[error("the config is not valid JSON")]
    Json {
        /// The parser's report.
        source: serde_json::Error,
    },
    /// A config lacks a key that has no default.
    #[error("the config has no {key}")]
    MissingKey {
        /// The key, with those above it.
        key: &'static str,
    },
    /// A config's value cannot be used.
    #[error("the config's {key} is {value}, expected {expected}")]
    InvalidKey {
        /// The key, with those above it.
        key: &'static str,
        /// The value, as JSON.
        value: String,
        /// What would be valid.
        expected: String,
    },
    /// The encoder's width does not divide among its heads.
    #[error(
        "the config's vision_config.hidden_size {hidden_size} is not divisible by \
         vision_config.num_attention_heads {num_attention_heads}"
    )]
    Heads {
        /// The encoder's width.
        hidden_size: usize,
        /// Its heads.
        num_attention_heads: usize,
    },
    /// The window merger follows a layer that is not there.
    #[error("the config's insert_layer_id {insert_layer_id} names none of the {num_hidden_layers} layers")]
    InsertLayer {
        /// The layer that the merger would follow.
        insert_layer_id: usize,
        /// Layers of the encoder.
        num_hidden_layers: usize,
    },
    /// An option is out of its range.
    #[error("the option {option} is {value}, expected 1 to {most}")]
    InvalidOption {
        /// The option's name.
        option: &'static str,
        /// Its value.
        value: usize,
        /// The largest valid value.
        most: usize,
    },
    /// A position table holds a list that does not fit its axis.
    #[error(
        "the position table for {patches} patches holds {entries} buckets, the largest {largest}, of {side} a side"
    )]
    PositionTable {
        /// Patches along the axis.
        patches: usize,
        /// Buckets in the list.
        entries: usize,
        /// The largest bucket.
        largest: u32,
        /// Buckets along one side of the position grid.
        side: usize,
    },
    /// A grid cannot be merged evenly.
    #[error(
        "slice {slice}: a grid of {rows} x {columns} patches is not divisible by {by_rows} x {by_columns}"
    )]
    Grid {
        /// The slice's index in the call.
        slice: usize,
        /// Patches from top to bottom.
        rows: usize,
        /// Patches from left to right.
        columns: usize,
        /// What the rows must be a positive multiple of.
        by_rows: usize,
        /// What the columns must be a positive multiple of.
        by_columns: usize,
    },
    /// A slice has more patches than one pass may take.
    #[error("slice {slice} has {patches} patches, the tower was loaded for {max_patches} a pass")]
    SliceTooLarge {
        /// The slice's index in the call.
        slice: usize,
        /// Its patches.
        patches: usize,
        /// The limit given at load.
        max_patches: usize,
    },
    /// A slice's pixel values do not fit its grid.
    #[error("slice {slice} has {actual} pixel values, its grid needs {expected}")]
    PixelValues {
        /// The slice's index in the call.
        slice: usize,
        /// Values that the grid needs.
        expected: usize,
        /// Values that were given.
        actual: usize,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

//! The one error type of the crate.

/// What can go wrong in a scan, a convolution or its gates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device or a view of its memory reported an error.
    #[error(transparent)]
    Blas(#[from] fermi_blas::Error),
    /// A size does not fit the operation.
    #[error("{operation}: {axis} is {actual}, expected {expected}")]
    Shape {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which size: `k rows`, `state key width`, ...
        axis: &'static str,
        /// The size that would fit.
        expected: usize,
        /// The size that was given.
        actual: usize,
    },
    /// The value heads cannot be dealt evenly to the key heads.
    #[error("{value_heads} value heads cannot share {key_heads} key heads evenly")]
    HeadGroups {
        /// Heads of queries and keys.
        key_heads: usize,
        /// Heads of values.
        value_heads: usize,
    },
    /// Chunks of no tokens make no progress.
    #[error("{operation}: a chunk must hold at least one token")]
    EmptyChunk {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// A convolution needs at least one tap.
    #[error("{operation}: a convolution needs at least one tap")]
    NoTaps {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// The scratch is smaller than `chunk_scratch_len` says.
    #[error("{operation}: the scratch holds {available} values, {needed} are needed")]
    Scratch {
        /// The operation that was asked for.
        operation: &'static str,
        /// Values that are needed.
        needed: usize,
        /// Values that are there.
        available: usize,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Fails with [`Error::Shape`] unless `actual` is `expected`.
pub(crate) fn check(
    operation: &'static str,
    axis: &'static str,
    expected: usize,
    actual: usize,
) -> Result<()> {
    if expected == actual { Ok(()) } else { Err(Error::Shape { operation, axis, expected, actual }) }
}

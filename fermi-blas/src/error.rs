//! The one error type of the crate.

use std::path::PathBuf;

/// What can go wrong in buffers, products and checkpoint reading.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size does not fit the operation.
    #[error("{operation}: {axis} is {actual}, expected {expected}")]
    Shape {
        /// The operation that was asked for.
        operation: &'static str,
        /// Which size: `rows`, `columns`, ...
        axis: &'static str,
        /// The size that would fit.
        expected: usize,
        /// The size that was given.
        actual: usize,
    },
    /// A view reaches outside its buffer.
    #[error("{operation}: needs {needed} elements, the buffer has {available}")]
    OutOfBounds {
        /// The operation that was asked for.
        operation: &'static str,
        /// Elements that the view would need.
        needed: usize,
        /// Elements that are there.
        available: usize,
    },
    /// The parts of a batched output would overlap.
    #[error("{operation}: a batch stride of {batch_stride} makes {rows} x {columns} parts overlap")]
    Overlap {
        /// The operation that was asked for.
        operation: &'static str,
        /// Distance between two parts, in elements.
        batch_stride: usize,
        /// Rows of one part.
        rows: usize,
        /// Columns of one part.
        columns: usize,
    },
    /// A size is so large that it cannot be counted.
    #[error("{operation}: the size overflows")]
    SizeOverflow {
        /// The operation that was asked for.
        operation: &'static str,
    },
    /// An index points outside a table.
    #[error("{operation}: index {index} is outside a table of {rows} rows")]
    Index {
        /// The operation that was asked for.
        operation: &'static str,
        /// The offending index.
        index: usize,
        /// Rows of the table.
        rows: usize,
    },
    /// The device has no memory left for a buffer.
    #[error("out of memory: {bytes} bytes could not be allocated")]
    OutOfMemory {
        /// Bytes that were asked for.
        bytes: usize,
    },
    /// The thread pool could not be started.
    #[error("cannot start a pool of {threads} threads")]
    Threads {
        /// Threads that were asked for.
        threads: usize,
        /// The pool's own report.
        source: rayon::ThreadPoolBuildError,
    },
    /// A file could not be read.
    #[error("{path}: cannot be read", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's report.
        source: std::io::Error,
    },
    /// A folder holds no checkpoint.
    #[error("{path}: holds neither model.safetensors nor model.safetensors.index.json", path = path.display())]
    NoCheckpoint {
        /// The folder.
        path: PathBuf,
    },
    /// A safetensors header is damaged.
    #[error("{path}: not a valid safetensors file", path = path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// The format's own report.
        source: safetensors::SafeTensorError,
    },
    /// The shard index is damaged.
    #[error("{path}: not a valid shard index: {reason}", path = path.display())]
    ShardIndex {
        /// The index file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The index names a shard that is not there.
    #[error("{index}: names the shard {shard}, which is not there", index = index.display())]
    MissingShard {
        /// The index file.
        index: PathBuf,
        /// The shard's file name.
        shard: String,
    },
    /// A tensor is not in the checkpoint.
    #[error("{path}: has no tensor {tensor}", path = path.display())]
    MissingTensor {
        /// The checkpoint.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor has another shape than the model needs.
    #[error("{path}: {tensor} has shape {actual:?}, expected {expected:?}", path = path.display())]
    TensorShape {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The shape that the model needs.
        expected: Vec<usize>,
        /// The shape in the file.
        actual: Vec<usize>,
    },
    /// A tensor's type cannot be read.
    #[error("{path}: {tensor} has type {dtype}, which is not supported here", path = path.display())]
    TensorType {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The type in the file.
        dtype: String,
    },
    /// An 8-bit weight is stored in a form that this version does not know.
    #[error("{path}: {tensor} has 8-bit format {version:?}, known is {known}", path = path.display())]
    Q8Format {
        /// The file that holds it.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The version in the file's metadata.
        version: Option<String>,
        /// The version that is known.
        known: &'static str,
    },
    /// A checkpoint is not written over another.
    #[error("{path}: is there already", path = path.display())]
    CheckpointExists {
        /// The file that would be written over, or hidden.
        path: PathBuf,
    },
    /// A checkpoint to be written names a tensor twice.
    #[error("the tensor {tensor} is declared twice")]
    DuplicateTensor {
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor that is written got more or fewer bytes than its shape holds.
    #[error("{path}: {tensor} has room for {expected} more bytes, got {actual}", path = path.display())]
    TensorBytes {
        /// The file that is written.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// Bytes that are still to come.
        expected: u64,
        /// Bytes that came.
        actual: u64,
    },
    /// The CUDA driver is not there or does not start.
    #[error("no usable CUDA driver: {library}: {reason}")]
    NoDriver {
        /// The library that was looked for.
        library: &'static str,
        /// What it answered.
        reason: String,
    },
    /// There is no card of this number.
    #[error("there is no CUDA device {index}: the driver sees {devices}")]
    NoDevice {
        /// The number that was asked for.
        index: usize,
        /// Cards that there are.
        devices: usize,
    },
    /// The card is older than the kernels.
    #[error("{name} has compute capability {}.{}, at least {}.{} is needed", capability.0, capability.1, oldest.0, oldest.1)]
    TooOld {
        /// The card's name.
        name: String,
        /// Its compute capability.
        capability: (i32, i32),
        /// The oldest that will do.
        oldest: (i32, i32),
    },
    /// The card, or the cuBLAS that is there, has no products in this arithmetic.
    #[error("{name} (compute capability {}.{}) with cuBLAS {cublas_version} cannot multiply in {mode}", capability.0, capability.1)]
    MathMode {
        /// The arithmetic that was asked for.
        mode: &'static str,
        /// The card's name.
        name: String,
        /// Its compute capability.
        capability: (i32, i32),
        /// The version of cuBLAS.
        cublas_version: i32,
    },
    /// A CUDA library's function failed.
    #[error("{library}: {operation} failed: {name} ({code})")]
    Device {
        /// The library.
        library: &'static str,
        /// The function, or the kernel that was started.
        operation: &'static str,
        /// The library's code.
        code: i32,
        /// The code's name.
        name: String,
    },
    /// The driver does not take a kernel.
    #[error("the kernel {kernel} of {module} cannot be loaded: {log}")]
    Kernel {
        /// The source that it stands in.
        module: &'static str,
        /// The kernel.
        kernel: &'static str,
        /// What the driver's compiler says.
        log: String,
    },
    /// A launch outside the limits of the oldest card.
    #[error("the kernel {kernel} was to run with {actual} {limit}, at most {most} are possible")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// Which limit.
        limit: &'static str,
        /// Its value.
        most: u32,
        /// What was asked for.
        actual: u32,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

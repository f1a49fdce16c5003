//! Reading and writing checkpoints: safetensors in one file or in shards, float32, float16, bfloat16 or our 8 bits.
//!
//! Only headers are read when a checkpoint is opened. A tensor's bytes are read when it is asked for, in pieces that are
//! converted and handed to the device one after the other, so a large file is never held in memory.

mod convert;
mod header;
mod load;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use safetensors::Dtype;

use crate::{Error, Result};

pub use write::{CheckpointWriter, Sharding, TensorSpec};

/// A checkpoint in one file.
const SINGLE: &str = "model.safetensors";
/// Which shard holds which tensor.
const INDEX: &str = "model.safetensors.index.json";

/// The metadata key under which a file with 8-bit weights names their form.
pub const Q8_FORMAT_KEY: &str = "fermi_blas.q8";
/// The form of 8-bit weights: NAME as int8 `[out, in]` and NAME.scale as float32 `[out, ceil(in / 64)]`.
pub const Q8_FORMAT_VERSION: &str = "1";

/// Called while tensors are read, with the bytes read so far and the bytes of all tensors of the checkpoint.
pub type Progress = Box<dyn Fn(u64, u64) + Send + Sync>;

/// Where a tensor lies.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Its type in the file.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The file that holds it.
    file: usize,
    /// Its bytes in that file.
    start: u64,
    bytes: usize,
}

/// An opened checkpoint: the names, types and shapes of its tensors.
pub struct Checkpoint {
    path: PathBuf,
    files: Vec<PathBuf>,
    /// The form of each file's 8-bit weights.
    q8_formats: Vec<Option<String>>,
    tensors: BTreeMap<String, TensorInfo>,
    metadata: BTreeMap<String, String>,
    seen: Mutex<Seen>,
    progress: Option<Progress>,
}

/// What was asked for so far.
#[derive(Debug, Default)]
struct Seen {
    names: BTreeSet<String>,
    bytes: u64,
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint").field("path", &self.path).field("tensors", &self.tensors.len()).finish()
    }
}

impl Checkpoint {
    /// Opens a `.safetensors` file, or a folder with `model.safetensors` or `model.safetensors.index.json`.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`], [`Error::Io`], [`Error::Safetensors`], [`Error::ShardIndex`], [`Error::MissingShard`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        header::open(path.as_ref())
    }

    /// Has `progress` called while tensors are read.
    #[must_use]
    pub fn with_progress(self, progress: Progress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// The file or folder that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// What is known of a tensor.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(name)
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// The files' metadata entries.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Tensors that nobody asked for so far.
    pub fn unused(&self) -> Vec<&str> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.names().filter(|name| !seen.names.contains(*name)).collect()
    }

    /// A tensor that must be there in a shape; marks it as used.
    fn expect(&self, name: &str, shape: &[usize]) -> Result<&TensorInfo> {
        let missing = || Error::MissingTensor { path: self.path.clone(), tensor: name.to_owned() };
        let info = self.info(name).ok_or_else(missing)?;
        if info.shape != shape {
            return Err(Error::TensorShape {
                path: self.files[info.file].clone(),
                tensor: name.to_owned(),
                expected: shape.to_vec(),
                actual: info.shape.clone(),
            });
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).names.insert(name.to_owned());
        Ok(info)
    }
}

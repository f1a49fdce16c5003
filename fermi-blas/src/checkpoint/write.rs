//! Writing checkpoints: safetensors, in one file or in shards, without holding a tensor in memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::Dtype;
use serde_json::{Map, Value, json};

use super::{INDEX, Q8_FORMAT_KEY, Q8_FORMAT_VERSION, SINGLE};
use crate::{Error, Q8_GROUP, Result, quantize};

/// A tensor that a checkpoint will hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: Dtype,
    /// Its shape.
    pub shape: Vec<usize>,
}

impl TensorSpec {
    /// A tensor by name, type and shape.
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: &[usize]) -> Self {
        Self { name: name.into(), dtype, shape: shape.to_vec() }
    }

    /// The two tensors of an 8-bit weight `[out, in]`: the codes under its name, and the scales.
    pub fn q8(name: &str, [rows, columns]: [usize; 2]) -> [Self; 2] {
        let scales = [rows, columns.div_ceil(Q8_GROUP)];
        [Self::new(name, Dtype::I8, &[rows, columns]), Self::new(scale_name(name), Dtype::F32, &scales)]
    }
}

/// The name of an 8-bit weight's scales.
pub(super) fn scale_name(name: &str) -> String {
    format!("{name}.scale")
}

/// How a checkpoint is cut into files; each holds at least one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The most tensors in a file.
    pub max_tensors: usize,
    /// The most bytes of tensors in a file.
    pub max_bytes: u64,
}

impl Default for Sharding {
    fn default() -> Self {
        Self { max_tensors: usize::MAX, max_bytes: u64::MAX }
    }
}

/// Where a tensor's next bytes go.
#[derive(Debug)]
struct Cursor {
    shard: usize,
    spec: TensorSpec,
    next: u64,
    end: u64,
}

#[derive(Debug)]
struct Shard {
    file: File,
    partial: PathBuf,
    path: PathBuf,
}

/// Writes a checkpoint of tensors that are known beforehand, piece by piece and in any order.
///
/// The files carry other names until [`CheckpointWriter::finish`], and vanish when it is never reached.
#[derive(Debug)]
pub struct CheckpointWriter {
    folder: PathBuf,
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Cursor>,
    index: Option<Value>,
}

impl CheckpointWriter {
    /// Starts a checkpoint in `folder`, which is made if need be.
    ///
    /// # Errors
    /// [`Error::CheckpointExists`], [`Error::DuplicateTensor`], [`Error::TensorType`] for values narrower than a byte,
    /// [`Error::SizeOverflow`], [`Error::Io`].
    pub fn create(
        folder: impl AsRef<Path>,
        tensors: impl IntoIterator<Item = TensorSpec>,
        metadata: &BTreeMap<String, String>,
        sharding: Sharding,
    ) -> Result<Self> {
        let folder = folder.as_ref().to_owned();
        fs::create_dir_all(&folder).map_err(io(&folder))?;
        for name in [SINGLE, INDEX] {
            if folder.join(name).exists() {
                return Err(Error::CheckpointExists { path: folder.join(name) });
            }
        }
        let groups = deal(&folder, tensors, sharding)?;
        let count = groups.len();
        let mut writer = Self { folder, shards: Vec::new(), tensors: BTreeMap::new(), index: None };
        let (mut total, mut weight_map) = (0, Map::new());
        for (shard, mut group) in groups.into_iter().enumerate() {
            let name = if count == 1 {
                SINGLE.to_owned()
            } else {
                format!("model-{:05}-of-{count:05}.safetensors", shard + 1)
            };
            // Wide values first: then all lie aligned, whatever the sizes.
            group.sort_by_key(|(spec, _)| std::cmp::Reverse(spec.dtype.bitsize()));
            for (spec, bytes) in &group {
                total += bytes;
                weight_map.insert(spec.name.clone(), Value::from(name.as_str()));
            }
            writer.start_shard(&name, group, metadata)?;
        }
        if count > 1 {
            writer.index = Some(json!({ "metadata": { "total_size": total }, "weight_map": weight_map }));
        }
        Ok(writer)
    }

    fn start_shard(
        &mut self,
        name: &str,
        group: Vec<(TensorSpec, u64)>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<()> {
        let mut metadata = metadata.clone();
        if group.iter().any(|(spec, _)| spec.dtype == Dtype::I8) {
            metadata.insert(Q8_FORMAT_KEY.to_owned(), Q8_FORMAT_VERSION.to_owned());
        }
        let (mut header, mut end) = (Map::new(), 0u64);
        if !metadata.is_empty() {
            header.insert("__metadata__".to_owned(), json!(metadata));
        }
        for (spec, bytes) in &group {
            let offsets = [end, end + bytes];
            let entry = json!({ "dtype": spec.dtype, "shape": spec.shape, "data_offsets": offsets });
            header.insert(spec.name.clone(), entry);
            end += bytes;
        }
        let mut header = Value::Object(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let partial = self.folder.join(format!("{name}.partial"));
        let mut file = File::create(&partial).map_err(io(&partial))?;
        let shard = self.shards.len();
        let mut next = 8 + header.len() as u64;
        let written = file.write_all(&(header.len() as u64).to_le_bytes());
        let written = written.and_then(|()| file.write_all(&header)).and_then(|()| file.set_len(next + end));
        self.shards.push(Shard { file, path: self.folder.join(name), partial: partial.clone() });
        written.map_err(io(&partial))?;
        for (spec, bytes) in group {
            let end = next + bytes;
            let name = spec.name.clone();
            if self.tensors.insert(name.clone(), Cursor { shard, spec, next, end }).is_some() {
                return Err(Error::DuplicateTensor { tensor: name });
            }
            next = end;
        }
        Ok(())
    }

    /// The next bytes of a tensor, as they stand in the file.
    ///
    /// # Errors
    /// [`Error::MissingTensor`] when it was not declared, [`Error::TensorBytes`] when that is more than its shape holds,
    /// [`Error::Io`].
    pub fn append_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let missing = || Error::MissingTensor { path: self.folder.clone(), tensor: name.to_owned() };
        let cursor = self.tensors.get_mut(name).ok_or_else(missing)?;
        let Shard { file, partial, .. } = &mut self.shards[cursor.shard];
        let (room, actual) = (cursor.end - cursor.next, bytes.len() as u64);
        if actual > room {
            let path = partial.clone();
            return Err(Error::TensorBytes { path, tensor: name.to_owned(), expected: room, actual });
        }
        file.seek(SeekFrom::Start(cursor.next)).map_err(io(partial))?;
        file.write_all(bytes).map_err(io(partial))?;
        cursor.next += actual;
        Ok(())
    }

    /// The next values of a tensor, rounded to the type that was declared. An 8-bit weight takes whole rows, and its scales
    /// are written along with it.
    ///
    /// # Errors
    /// [`Error::MissingTensor`], [`Error::TensorBytes`], [`Error::Io`]; [`Error::TensorType`] when the declared type is none
    /// of float32, float16, bfloat16 and a matrix of int8; [`Error::Shape`] for a part of a row of an 8-bit weight.
    pub fn append(&mut self, name: &str, values: &[f32]) -> Result<()> {
        let missing = || Error::MissingTensor { path: self.folder.clone(), tensor: name.to_owned() };
        let spec = &self.tensors.get(name).ok_or_else(missing)?.spec;
        match (spec.dtype, &spec.shape[..]) {
            (Dtype::F32, _) => self.append_bytes(name, &narrow(values, f32::to_le_bytes)),
            (Dtype::F16, _) => self.append_bytes(name, &narrow(values, |x| f16::from_f32(x).to_le_bytes())),
            (Dtype::BF16, _) => self.append_bytes(name, &narrow(values, |x| bf16::from_f32(x).to_le_bytes())),
            (Dtype::I8, &[_, columns]) => {
                let actual = values.len().checked_rem(columns).unwrap_or(values.len());
                if actual != 0 {
                    return Err(Error::Shape {
                        operation: "append",
                        axis: "part of a row",
                        expected: 0,
                        actual,
                    });
                }
                let (codes, scales) = quantize(values, columns);
                self.append_bytes(name, bytemuck::cast_slice(&codes))?;
                self.append_bytes(&scale_name(name), &narrow(&scales, f32::to_le_bytes))
            }
            (dtype, _) => Err(Error::TensorType {
                path: self.folder.clone(),
                tensor: name.to_owned(),
                dtype: format!("{dtype:?}"),
            }),
        }
    }

    /// Gives the files their names; an index comes last.
    ///
    /// # Errors
    /// [`Error::TensorBytes`] when a tensor lacks values, [`Error::Io`].
    pub fn finish(mut self) -> Result<()> {
        for (name, cursor) in &self.tensors {
            if cursor.next < cursor.end {
                return Err(Error::TensorBytes {
                    path: self.shards[cursor.shard].partial.clone(),
                    tensor: name.clone(),
                    expected: cursor.end - cursor.next,
                    actual: 0,
                });
            }
        }
        for shard in &self.shards {
            shard.file.sync_all().map_err(io(&shard.partial))?;
        }
        while let Some(Shard { partial, path, .. }) = self.shards.first() {
            fs::rename(partial, path).map_err(io(path))?;
            self.shards.remove(0);
        }
        if let Some(index) = &self.index {
            let (partial, path) = (self.folder.join(format!("{INDEX}.partial")), self.folder.join(INDEX));
            fs::write(&partial, format!("{index:#}\n")).map_err(io(&partial))?;
            fs::rename(&partial, &path).map_err(io(&path))?;
        }
        Ok(())
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        for shard in &self.shards {
            // Nothing can be done about a file that cannot be removed; its name says that it is partial.
            let _ = fs::remove_file(&shard.partial);
        }
    }
}

/// The tensors of each shard, with their bytes; one empty shard when there are none.
fn deal(
    folder: &Path,
    tensors: impl IntoIterator<Item = TensorSpec>,
    sharding: Sharding,
) -> Result<Vec<Vec<(TensorSpec, u64)>>> {
    let (mut groups, mut held) = (vec![Vec::new()], 0u64);
    for spec in tensors {
        let bytes = bytes_of(folder, &spec)?;
        let last = groups.len() - 1;
        let full =
            groups[last].len() >= sharding.max_tensors || held.saturating_add(bytes) > sharding.max_bytes;
        if full && !groups[last].is_empty() {
            groups.push(Vec::new());
            held = 0;
        }
        held =
            held.checked_add(bytes).ok_or(Error::SizeOverflow { operation: "CheckpointWriter::create" })?;
        let last = groups.len() - 1;
        groups[last].push((spec, bytes));
    }
    Ok(groups)
}

fn bytes_of(folder: &Path, spec: &TensorSpec) -> Result<u64> {
    let width = spec.dtype.bitsize();
    if !width.is_multiple_of(8) {
        let (path, dtype) = (folder.to_owned(), format!("{:?}", spec.dtype));
        return Err(Error::TensorType { path, tensor: spec.name.clone(), dtype });
    }
    let bytes = spec.shape.iter().try_fold(width as u64 / 8, |bytes, size| bytes.checked_mul(*size as u64));
    bytes.ok_or(Error::SizeOverflow { operation: "CheckpointWriter::create" })
}

fn narrow<const N: usize>(values: &[f32], round: impl Fn(f32) -> [u8; N]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * N];
    for (bytes, x) in bytes.chunks_exact_mut(N).zip(values) {
        bytes.copy_from_slice(&round(*x));
    }
    bytes
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    |source| Error::Io { path: path.to_owned(), source }
}

//! Opening: which files there are, and what their headers say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use safetensors::SafeTensorError;
use safetensors::tensor::Metadata;

use super::{Checkpoint, INDEX, Q8_FORMAT_KEY, SINGLE, TensorInfo};
use crate::{Error, Result};

/// A header larger than this is damage, not data (the format's own limit).
const MAX_HEADER: u64 = 100_000_000;

pub(super) fn open(path: &Path) -> Result<Checkpoint> {
    let mut checkpoint = Checkpoint {
        path: path.to_owned(),
        files: Vec::new(),
        q8_formats: Vec::new(),
        tensors: BTreeMap::new(),
        metadata: BTreeMap::new(),
        seen: Mutex::default(),
        progress: None,
    };
    let (single, index) = (path.join(SINGLE), path.join(INDEX));
    if path.is_file() {
        read_file(&mut checkpoint, path, None)?;
    } else if index.is_file() {
        for (shard, names) in read_index(&index)? {
            let file = path.join(&shard);
            if !file.is_file() {
                return Err(Error::MissingShard { index, shard });
            }
            read_file(&mut checkpoint, &file, Some(&names))?;
        }
    } else if single.is_file() {
        read_file(&mut checkpoint, &single, None)?;
    } else {
        return Err(Error::NoCheckpoint { path: path.to_owned() });
    }
    Ok(checkpoint)
}

/// The shards that an index names, each with its tensors.
fn read_index(index: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let bad = |reason| Error::ShardIndex { path: index.to_owned(), reason };
    let io = |source| Error::Io { path: index.to_owned(), source };
    if std::fs::metadata(index).map_err(io)?.len() > MAX_HEADER {
        return Err(bad("too large"));
    }
    let text = std::fs::read(index).map_err(io)?;
    let json: serde_json::Value = serde_json::from_slice(&text).map_err(|_| bad("not JSON"))?;
    let map =
        json.get("weight_map").and_then(serde_json::Value::as_object).ok_or_else(|| bad("no weight_map"))?;
    let mut shards: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, shard) in map {
        let shard = shard.as_str().ok_or_else(|| bad("a shard's name is not a string"))?;
        if shard.contains(['/', '\\']) || shard == ".." {
            return Err(bad("a shard's name leads out of the folder"));
        }
        shards.entry(shard.to_owned()).or_default().insert(name.clone());
    }
    Ok(shards)
}

/// Adds a file's tensors (those in `wanted`, if given) to the checkpoint.
fn read_file(checkpoint: &mut Checkpoint, path: &Path, wanted: Option<&BTreeSet<String>>) -> Result<()> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let bad = |source| Error::Safetensors { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(io)?;
    let file_len = file.metadata().map_err(io)?.len();
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| bad(SafeTensorError::HeaderTooSmall))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length.saturating_add(8) > file_len {
        return Err(bad(SafeTensorError::InvalidHeaderLength));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(io)?;
    let metadata: Metadata = serde_json::from_slice(&header)
        .map_err(|source| bad(SafeTensorError::InvalidHeaderDeserialization(source)))?;
    let data = 8 + length;
    let index = checkpoint.files.len();
    for (name, info) in metadata.tensors() {
        if wanted.is_some_and(|wanted| !wanted.contains(&name)) {
            continue;
        }
        let (start, end) = info.data_offsets;
        let values = info.shape.iter().try_fold(1usize, |values, size| values.checked_mul(*size));
        let bytes = values.and_then(|values| values.checked_mul(info.dtype.bitsize())).map(|bits| bits / 8);
        if start > end || bytes != Some(end - start) || data.saturating_add(end as u64) > file_len {
            return Err(bad(SafeTensorError::InvalidOffset(name)));
        }
        let (shape, start) = (info.shape.clone(), data + start as u64);
        let info =
            TensorInfo { dtype: info.dtype, shape, file: index, start, bytes: end - info.data_offsets.0 };
        checkpoint.tensors.insert(name, info);
    }
    if let Some(wanted) = wanted.and_then(|wanted| wanted.iter().find(|name| !checkpoint.contains(name))) {
        return Err(Error::MissingTensor { path: path.to_owned(), tensor: wanted.clone() });
    }
    let format = metadata.metadata().as_ref().and_then(|entries| entries.get(Q8_FORMAT_KEY));
    checkpoint.q8_formats.push(format.cloned());
    if let Some(entries) = metadata.metadata() {
        checkpoint.metadata.extend(entries.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    checkpoint.files.push(path.to_owned());
    Ok(())
}

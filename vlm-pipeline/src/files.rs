//! Small files of a checkpoint.

use std::path::Path;

use serde_json::Value;

use crate::{Error, Result};

/// A file's text, or none when there is no such file.
pub(crate) fn read_text_if_there(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::ReadFile { path: path.to_owned(), source }),
    }
}

/// A file's JSON.
pub(crate) fn read_json(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::ReadFile { path: path.to_owned(), source })?;
    parse(path, &text)
}

/// A file's JSON, or none when there is no such file.
pub(crate) fn read_json_if_there(path: &Path) -> Result<Option<Value>> {
    read_text_if_there(path)?.map(|text| parse(path, &text)).transpose()
}

fn parse(path: &Path, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|source| Error::ReadJson { path: path.to_owned(), source })
}

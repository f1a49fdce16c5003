//! Golden files and the tiny checkpoint.

use std::path::PathBuf;

use serde_json::Value;

/// The trained checkpoint of the repository.
pub(crate) fn tiny() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/assets/tiny"))
}

/// A file of this crate's golden data.
pub(crate) fn data(name: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The records of a golden file.
pub(crate) fn records(name: &str) -> Vec<Value> {
    serde_json::from_str(&data(name)).unwrap()
}

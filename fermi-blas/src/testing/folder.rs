//! A folder of a test's own.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder for temporary files, which vanishes when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new empty folder; `name` tells the tests of one process apart.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

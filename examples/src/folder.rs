//! A folder of files that appear together or not at all.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where files wait for their names, within the folder so that renaming never copies.
const STAGING: &str = ".partial";

/// A checkpoint's folder being written: its files lie aside until [`StagedFolder::commit`], and vanish without it.
#[derive(Debug)]
pub struct StagedFolder {
    folder: PathBuf,
    staging: PathBuf,
    /// Whether the folder is ours to remove if nothing comes of it.
    made: bool,
}

impl StagedFolder {
    /// Starts a folder, which is made if need be. One that holds something is taken only with `force`.
    ///
    /// # Errors
    /// When the folder is in the way or cannot be made.
    pub fn new(folder: &Path, force: bool) -> Result<Self> {
        let failed = || format!("{}: cannot be made", folder.display());
        let made = !folder.exists();
        fs::create_dir_all(folder).with_context(failed)?;
        let mut entries = fs::read_dir(folder).with_context(failed)?;
        let occupied = entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != OsStr::new(STAGING)));
        if occupied && !force {
            bail!("{}: not empty (--force replaces the checkpoint that is there)", folder.display());
        }
        let staging = folder.join(STAGING);
        if staging.exists() {
            fs::remove_dir_all(&staging).with_context(failed)?;
        }
        fs::create_dir(&staging).with_context(failed)?;
        Ok(Self { folder: folder.to_owned(), staging, made })
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.staging
    }

    /// Writes a small file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.staging.join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Gives all files their names, in place of the weights and the files of these names that were there.
    ///
    /// # Errors
    /// When a file cannot be renamed.
    pub fn commit(mut self) -> Result<()> {
        let failed = || format!("{}: cannot be completed", self.folder.display());
        for entry in fs::read_dir(&self.folder).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            if is_weights(&path) {
                fs::remove_file(&path).with_context(failed)?;
            }
        }
        for entry in fs::read_dir(&self.staging).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            fs::rename(entry.path(), self.folder.join(entry.file_name())).with_context(failed)?;
        }
        self.made = false;
        Ok(())
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        // Nothing can be done about what cannot be removed; its name says that it is partial.
        let _ = fs::remove_dir_all(&self.staging);
        if self.made {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

/// Whether a file holds weights, or says which file does.
pub fn is_weights(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
}

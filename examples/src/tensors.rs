//! Tensors for other programs to read.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use safetensors::{Dtype, View};

/// A safetensors file in the making.
#[derive(Debug, Default)]
pub struct TensorFile(Vec<(String, Tensor)>);

#[derive(Debug)]
struct Tensor {
    shape: Vec<usize>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

impl TensorFile {
    /// Adds a float32 tensor.
    pub fn add(&mut self, name: &str, shape: &[usize], values: Vec<f32>) {
        self.0.push((name.to_owned(), Tensor { shape: shape.to_vec(), values: Values::F32(values) }));
    }

    /// Adds an int32 tensor.
    pub fn add_i32(&mut self, name: &str, shape: &[usize], values: Vec<i32>) {
        self.0.push((name.to_owned(), Tensor { shape: shape.to_vec(), values: Values::I32(values) }));
    }

    /// Writes the file; one that is there is replaced by the whole new one, or not at all. Where a link leads is what counts;
    /// anything but a file is refused.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.replace(path).with_context(|| format!("{}: cannot be written", path.display()))
    }

    fn replace(&self, path: &Path) -> Result<()> {
        let target = if path.exists() { path.canonicalize()? } else { path.to_owned() };
        ensure!(!target.exists() || target.is_file(), "it is there, and no file");
        let path = target.as_path();
        // The library writes a private temporary file and renames it: the permissions are to be those of any new file.
        let permissions = File::options().create(true).append(true).open(path)?.metadata()?.permissions();
        let tensors = self.0.iter().map(|(name, tensor)| (name.as_str(), tensor));
        safetensors::serialize_to_file(tensors, None, path)?;
        Ok(fs::set_permissions(path, permissions)?)
    }
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        match self.values {
            Values::F32(_) => Dtype::F32,
            Values::I32(_) => Dtype::I32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match &self.values {
            Values::F32(values) => bytemuck::cast_slice(values).into(),
            Values::I32(values) => bytemuck::cast_slice(values).into(),
        }
    }

    fn data_len(&self) -> usize {
        4 * self.shape.iter().product::<usize>()
    }
}

//! Tensors for other programs to read.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
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

    /// Writes the file: under another name first, so that a file of this name is whole.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = Path::new(&partial);
        let tensors = self.0.iter().map(|(name, tensor)| (name.as_str(), tensor));
        let written = safetensors::serialize_to_file(tensors, None, partial).map_err(anyhow::Error::from);
        let written = written.and_then(|()| Ok(fs::rename(partial, path)?));
        written.with_context(|| {
            // What is left of a failed attempt is of no use.
            let _ = fs::remove_file(partial);
            format!("{}: cannot be written", path.display())
        })
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

//! The tensors of a backbone: one description for the list, the plan and the reader.

use fermi_blas::{Blas, Checkpoint, Matrix, Precision, Q8_GROUP, Weight};

use crate::{Config, Result};

/// How a tensor is kept on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorKind {
    /// A matrix in the precision that the model is loaded with.
    Projection,
    /// float32, whatever the precision.
    Float32,
}

/// One tensor of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTensor {
    /// Its full name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// How it is kept.
    pub kind: TensorKind,
}

impl ModelTensor {
    /// Bytes on the device.
    pub(crate) fn bytes(&self, precision: Precision) -> usize {
        let len: usize = self.shape.iter().product();
        match (self.kind, precision) {
            (TensorKind::Float32, _) | (_, Precision::F32) => 4 * len,
            (TensorKind::Projection, Precision::Bf16) => 2 * len,
            (TensorKind::Projection, Precision::Q8) => {
                let columns = self.shape.last().copied().unwrap_or(1);
                len + 4 * (len / columns) * columns.div_ceil(Q8_GROUP)
            }
        }
    }
}

/// A tensor by its name within its part of the model.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: TensorKind,
}

/// A weight `[out, in]` of a linear layer.
pub(crate) fn projection(name: &'static str, rows: usize, columns: usize) -> Tensor {
    Tensor { name, shape: vec![rows, columns], kind: TensorKind::Projection }
}

/// A tensor that is always float32.
pub(crate) fn float32<const N: usize>(name: &'static str, shape: [usize; N]) -> Tensor {
    Tensor { name, shape: shape.to_vec(), kind: TensorKind::Float32 }
}

/// The name of the output head, which stands outside the backbone's prefix.
pub(crate) const LM_HEAD: &str = "lm_head.weight";

/// Reads the tensors of one part of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loader<'a, B: Blas> {
    pub(crate) device: &'a B,
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) precision: Precision,
    pub(crate) prefix: &'a str,
}

impl<'a, B: Blas> Loader<'a, B> {
    /// The same under another prefix.
    pub(crate) fn under<'b>(&self, prefix: &'b str) -> Loader<'b, B>
    where
        'a: 'b,
    {
        Loader { device: self.device, checkpoint: self.checkpoint, precision: self.precision, prefix }
    }

    /// A tensor kept as its kind says.
    pub(crate) fn weight(&self, tensor: &Tensor) -> Result<Weight<B>> {
        let name = format!("{}{}", self.prefix, tensor.name);
        let precision = match tensor.kind {
            TensorKind::Projection => self.precision,
            TensorKind::Float32 => Precision::F32,
        };
        let rows = tensor.shape.first().copied().unwrap_or(1);
        let shape = [rows, tensor.shape.iter().skip(1).product()];
        Ok(self.checkpoint.load_weight(self.device, &name, shape, precision)?)
    }

    /// A float32 matrix `[C, 1, K]` as `[K, C]`.
    pub(crate) fn transposed(&self, tensor: &Tensor) -> Result<Matrix<B>> {
        let name = format!("{}{}", self.prefix, tensor.name);
        let values = self.checkpoint.load_vec(&name, &tensor.shape)?;
        let rows = tensor.shape.first().copied().unwrap_or(1);
        let columns = values.len() / rows.max(1);
        let transposed: Vec<f32> =
            (0..columns).flat_map(|column| values.iter().skip(column).step_by(columns).copied()).collect();
        Ok(Matrix::from_slice(self.device, columns, rows, &transposed)?)
    }

    /// A tensor as a float32 matrix; a vector becomes one row.
    pub(crate) fn matrix(&self, tensor: &Tensor) -> Result<Matrix<B>> {
        let name = format!("{}{}", self.prefix, tensor.name);
        Ok(self.checkpoint.load_matrix(self.device, &name, &tensor.shape)?)
    }
}

impl Config {
    /// Every tensor that a checkpoint of this config must hold, in the order of the model. A tied head is not listed.
    pub fn tensors(&self) -> Vec<ModelTensor> {
        let prefix = self.layout.prefix();
        let mut tensors = Vec::new();
        let mut add = |prefix: &str, tensor: Tensor| {
            let Tensor { name, shape, kind } = tensor;
            tensors.push(ModelTensor { name: format!("{prefix}{name}"), shape, kind });
        };
        add(prefix, crate::embedding::tensor(self));
        for (index, kind) in self.layer_types.iter().enumerate() {
            let prefix = layer_prefix(prefix, index);
            crate::layer::tensors(self, *kind).into_iter().for_each(|tensor| add(&prefix, tensor));
        }
        add(prefix, crate::head::norm_tensor(self));
        if !self.tie_word_embeddings {
            add("", crate::head::tensor(self));
        }
        tensors
    }
}

/// The prefix of a layer's tensors.
pub(crate) fn layer_prefix(prefix: &str, index: usize) -> String {
    format!("{prefix}layers.{index}.")
}

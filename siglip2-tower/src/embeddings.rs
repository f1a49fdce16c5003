//! Patches to vectors.

use fermi_blas::{Blas, Checkpoint, Gemm, Matrix, RowOps};

use crate::activations::Activations;
use crate::slices::Pass;
use crate::{Config, Result, Slice, VisionConfig};

/// hidden = position_embedding[id] + patch · Wᵀ + b
///
/// The reference's convolution has its stride equal to its kernel, so it is one product.
#[derive(Debug)]
pub(crate) struct Embeddings<B: Blas> {
    patch_embedding: Matrix<B>,      // [D, channels * P * P]
    patch_embedding_bias: Matrix<B>, // [1, D]
    position_embedding: Matrix<B>,   // [side * side, D]
    patch_size: usize,
    num_channels: usize,
}

impl<B: Blas + RowOps> Embeddings<B> {
    pub(crate) fn load(device: &B, checkpoint: &Checkpoint, config: &Config) -> Result<Self> {
        let VisionConfig { hidden_size, num_channels, patch_size, .. } = config.vision_config;
        let side = config.vision_config.positions_per_side();
        let load = |name: &str, shape: &[usize]| {
            checkpoint.load_matrix(device, &format!("model.vision_tower.embeddings.{name}"), shape)
        };
        Ok(Self {
            patch_embedding: load(
                "patch_embedding.weight",
                &[hidden_size, num_channels, patch_size, patch_size],
            )?,
            patch_embedding_bias: load("patch_embedding.bias", &[hidden_size])?,
            position_embedding: load("position_embedding.weight", &[side * side, hidden_size])?,
            patch_size,
            num_channels,
        })
    }

    /// Fills the first rows of `activations.hidden` with the embeddings of a pass, whose indices are there already.
    pub(crate) fn forward(&self, device: &B, pass: Pass<'_>, activations: &mut Activations<B>) -> Result<()> {
        let _span = device.span("embeddings");
        self.upload(device, pass, activations)?;
        let Activations { patches, hidden, indices, .. } = activations;
        let rows = pass.rows();
        let mut hidden = hidden.row_range_mut(0..rows)?; // [T, D]
        device.gather(self.position_embedding.view().into(), indices.positions()?, hidden.reborrow())?;
        let patches = patches.row_range(0..rows)?; // [T, channels * P * P]
        device.gemm(Gemm::new(patches, self.patch_embedding.view().t(), hidden.reborrow())?.beta(1.0))?;
        Ok(device.add_in_place(hidden, self.patch_embedding_bias.view())?)
    }

    /// Sends the pixel values to the device, one patch a row.
    fn upload(&self, device: &B, pass: Pass<'_>, activations: &mut Activations<B>) -> Result<()> {
        let Activations { patches, staging, .. } = activations;
        let width = patches.columns();
        for (slice, (_, rows)) in pass.slices().iter().zip(pass.ranges()) {
            let mut first = 0;
            while first < rows.len() {
                let count = (staging.len() / width).min(rows.len() - first);
                let staged = &mut staging[..count * width];
                for (index, patch) in staged.chunks_exact_mut(width).enumerate() {
                    self.unpack(slice, first + index, patch);
                }
                let start = rows.start + first;
                device.write(staged, patches.row_range_mut(start..start + count)?)?;
                first += count;
            }
        }
        Ok(())
    }

    /// One patch out of the packing `[channels, P, patches * P]`.
    fn unpack(&self, slice: &Slice<'_>, index: usize, patch: &mut [f32]) {
        let size = self.patch_size;
        let line = slice.pixel_values.len() / (self.num_channels * size);
        for (part, values) in patch.chunks_exact_mut(size).zip(slice.pixel_values.chunks_exact(line)) {
            part.copy_from_slice(&values[index * size..][..size]);
        }
    }
}

//! Every buffer of a pass, allocated once.

use fermi_blas::{Backend, Blas, Matrix, ViewMut};

use crate::indices::{INDICES, Indices};
use crate::{Config, Options, Result, VisionConfig};

/// Patches that are permuted on the host and sent to the device at once: few transfers, and room in a processor's cache.
const STAGED_PATCHES: usize = 512;

/// Shapes of the buffers, N = `max_patches`, D = `hidden_size`, I = `intermediate_size`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shapes {
    patches: [usize; 2],
    wide: [usize; 2],
    qkv: [usize; 2],
    mlp: [usize; 2],
    scores: [usize; 2],
}

impl Shapes {
    pub(crate) fn new(config: &Config, options: &Options) -> Self {
        let VisionConfig { hidden_size, intermediate_size, num_attention_heads, .. } = config.vision_config;
        let rows = options.max_patches;
        Self {
            patches: [rows, config.vision_config.patch_values()],
            wide: [rows, hidden_size],
            qkv: [rows, 3 * hidden_size],
            mlp: [rows, intermediate_size],
            scores: [options.attention_rows.min(rows) * num_attention_heads, rows],
        }
    }

    /// Bytes of the buffers on the device: float32 values and u32 indices.
    pub(crate) fn bytes(&self) -> usize {
        let buffers = [self.patches, self.wide, self.wide, self.wide, self.qkv, self.mlp, self.scores];
        let values = buffers.iter().map(|[rows, columns]| rows.saturating_mul(*columns));
        values.fold(INDICES * self.wide[0], usize::saturating_add).saturating_mul(4)
    }
}

/// The buffers of a pass of at most N patches.
#[derive(Debug)]
pub(crate) struct Activations<B: Blas> {
    /// Pixel values, one patch a row. `[N, channels * P * P]`
    pub(crate) patches: Matrix<B>,
    /// The residual stream. `[N, D]`
    pub(crate) hidden: Matrix<B>,
    /// The residual stream in window order. `[N, D]`, and as `[N / 4, 4 D]`
    pub(crate) windows: Matrix<B>,
    /// Normed input of a block, then the heads' contexts. `[N, D]`, and as `[N / 4, 4 D]`
    pub(crate) normed: Matrix<B>,
    /// Queries, keys and values side by side; the projector's inner vectors. `[N, 3 D]`, and as `[N / 4, 4 D]`
    pub(crate) qkv: Matrix<B>,
    /// Inner vectors of an MLP. `[N, I]`, and as `[N / 4, 4 I]`
    pub(crate) mlp: Matrix<B>,
    /// Scores of some query rows, a row's heads side by side. `[rows, heads * keys]`
    pub(crate) scores: Matrix<B>,
    /// Position ids and window orders.
    pub(crate) indices: Indices<B>,
    /// Patches on their way to the device. `[64, channels * P * P]`
    pub(crate) staging: Vec<f32>,
}

impl<B: Blas> Activations<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let Shapes { patches, wide, qkv, mlp, scores } = Shapes::new(config, options);
        let zeros = |[rows, columns]: [usize; 2]| Matrix::zeros(device, rows, columns);
        Ok(Self {
            patches: zeros(patches)?,
            hidden: zeros(wide)?,
            windows: zeros(wide)?,
            normed: zeros(wide)?,
            qkv: zeros(qkv)?,
            mlp: zeros(mlp)?,
            scores: zeros(scores)?,
            indices: Indices::new(device, options.max_patches)?,
            staging: vec![0.0; STAGED_PATCHES.min(options.max_patches) * config.vision_config.patch_values()],
        })
    }
}

/// The first elements of a buffer as a matrix of another shape.
pub(crate) fn part<B: Backend>(
    buffer: &mut Matrix<B>,
    rows: usize,
    columns: usize,
) -> Result<ViewMut<'_, B>> {
    let len = buffer.rows() * buffer.columns();
    Ok(buffer.view_mut().reshape(1, len)?.column_range(0..rows * columns)?.reshape(rows, columns)?)
}

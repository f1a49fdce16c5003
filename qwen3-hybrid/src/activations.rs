//! Everything that a pass writes to, allocated once.

use fermi_blas::{Matrix, MemoryPlan, RotaryTable};
use gdn_scan::ScanBackend;

use crate::attention::{AttentionActivations, attention_sizes};
use crate::delta_net::{DeltaActivations, delta_sizes};
use crate::head::{HeadActivations, logits_size};
use crate::mlp::{MlpActivations, mlp_sizes};
use crate::sequence::sequence_bytes;
use crate::tensors::TensorKind;
use crate::{Config, Options, Result};

/// float32 values of a weight that are expanded at once: enough for a product to run at full speed.
const WEIGHT_PIECE: usize = 4 << 20;

/// Scratch of a pass over at most `prefill_chunk` (T) tokens.
#[derive(Debug)]
pub(crate) struct Activations<B: ScanBackend> {
    /// Token ids, `[1, T]`
    pub(crate) ids: Matrix<B, u32>,
    /// The residual, `[T, hidden]`
    pub(crate) hidden: Matrix<B>,
    /// What a norm gives, `[T, hidden]`
    pub(crate) normed: Matrix<B>,
    /// What is added to the residual, `[T, hidden]`
    pub(crate) mixed: Matrix<B>,
    /// A weight expanded to float32, or a piece of it, `[1, n]`
    pub(crate) weights: Matrix<B>,
    pub(crate) delta_net: DeltaActivations<B>,
    pub(crate) attention: AttentionActivations<B>,
    pub(crate) mlp: MlpActivations<B>,
    pub(crate) head: HeadActivations<B>,
}

impl<B: ScanBackend> Activations<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let tokens = options.prefill_chunk;
        let residual = || Matrix::zeros(device, tokens, config.hidden_size);
        Ok(Self {
            ids: Matrix::zeros(device, 1, tokens)?,
            hidden: residual()?,
            normed: residual()?,
            mixed: residual()?,
            weights: Matrix::zeros(device, 1, weights_len(config, options))?,
            delta_net: DeltaActivations::new(device, config, options)?,
            attention: AttentionActivations::new(device, config, options)?,
            mlp: MlpActivations::new(device, config, options)?,
            head: HeadActivations::new(device, config, options)?,
        })
    }
}

/// Values of a weight that are expanded at once: the largest projection, or as many whole rows of any as fit a piece.
fn weights_len(config: &Config, options: &Options) -> usize {
    if options.precision == fermi_blas::Precision::F32 {
        return 0;
    }
    let projections = || {
        let tensors = config.tensors().into_iter();
        tensors.filter(|tensor| tensor.kind == TensorKind::Projection).map(|tensor| tensor.shape)
    };
    let largest = projections().map(|shape| shape.iter().product::<usize>()).max().unwrap_or(0);
    let widest = projections().filter_map(|shape| shape.last().copied()).max().unwrap_or(0);
    largest.min(WEIGHT_PIECE).max(widest)
}

/// Bytes that a backbone and one of its sequences hold on a device, told before anything is loaded.
///
/// # Errors
/// [`crate::Error::LoadOption`] when an option is 0.
pub(crate) fn memory_plan<B: ScanBackend>(
    device: &B,
    config: &Config,
    options: &Options,
) -> Result<MemoryPlan> {
    let options = options.checked(config)?;
    let tokens = options.prefill_chunk;
    let weights: usize = config.tensors().iter().map(|tensor| tensor.bytes(options.precision)).sum();
    // Cosines and sines of half the rotary dimensions each, and the positions themselves.
    let tables = 4 * options.context_length * (config.rotary_dim() + 1);
    let sizes = [(tokens, 3 * config.hidden_size + 1), (1, weights_len(config, &options)), (1, 1)]
        .into_iter()
        .chain(delta_sizes(device, config, &options)?)
        .chain(attention_sizes(config, &options))
        .chain(mlp_sizes(config, &options))
        .chain([logits_size(config, &options)]);
    Ok(MemoryPlan {
        weights: weights + tables,
        caches: sequence_bytes(config, options.context_length),
        scratch: sizes.map(|(rows, columns)| 4 * rows * columns).sum(),
    })
}

/// Tables that depend on positions only.
#[derive(Debug)]
pub(crate) struct Tables<B: ScanBackend> {
    /// 0, 1, 2, ..., `[1, context]`: any run of positions is a view of it, so none is ever sent.
    pub(crate) positions: Matrix<B, u32>,
    pub(crate) rotary: RotaryTable<B>,
}

impl<B: ScanBackend> Tables<B> {
    pub(crate) fn new(device: &B, config: &Config, options: &Options) -> Result<Self> {
        let positions: Vec<u32> = (0u32..).take(options.context_length).collect();
        Ok(Self {
            positions: Matrix::from_slice(device, 1, options.context_length, &positions)?,
            rotary: RotaryTable::new(device, options.context_length, config.rotary_dim(), config.rope_theta)?,
        })
    }
}

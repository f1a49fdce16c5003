//! What a sequence leaves behind in the layers.

use std::sync::Arc;

use fermi_blas::{Backend, Matrix, ViewMut};

use crate::{Config, Error, LayerType, Result};

/// What a delta-net layer keeps: a fixed size, however long the sequence.
#[derive(Debug)]
pub(crate) struct DeltaState<B: Backend> {
    /// The last inputs of the convolution, the oldest first, `[K - 1, C]`
    pub(crate) conv: Matrix<B>,
    /// One state per value head, `[Hv * Dk, Dv]`
    pub(crate) recurrent: Matrix<B>,
}

/// What a softmax layer keeps: keys and values of all tokens.
#[derive(Debug)]
pub(crate) struct KeyValues<B: Backend> {
    /// Normed and rotated, `[capacity, Hkv * D]`
    pub(crate) keys: Matrix<B>,
    /// `[capacity, Hkv * D]`
    pub(crate) values: Matrix<B>,
}

impl<B: Backend> KeyValues<B> {
    /// Where the keys and values of `tokens` new tokens go, behind `history` others.
    ///
    /// # Shapes
    /// each `[T, Hkv * D]`
    pub(crate) fn new_rows(
        &mut self,
        history: usize,
        tokens: usize,
    ) -> Result<(ViewMut<'_, B>, ViewMut<'_, B>)> {
        let rows = history..history + tokens;
        Ok((self.keys.row_range_mut(rows.clone())?, self.values.row_range_mut(rows)?))
    }
}

/// What one layer keeps.
#[derive(Debug)]
pub(crate) enum LayerState<B: Backend> {
    Delta(DeltaState<B>),
    KeyValues(KeyValues<B>),
}

impl<B: Backend> LayerState<B> {
    fn new(device: &B, sizes: LayerSizes) -> Result<Self> {
        let [first, second] = sizes.matrices.map(|(rows, columns)| Matrix::zeros(device, rows, columns));
        let (first, second) = (first?, second?);
        Ok(match sizes.kind {
            LayerType::LinearAttention => Self::Delta(DeltaState { conv: first, recurrent: second }),
            LayerType::FullAttention => Self::KeyValues(KeyValues { keys: first, values: second }),
        })
    }

    /// Takes over what another sequence of `len` tokens keeps.
    fn copy_from(&mut self, device: &B, other: &Self, len: usize) -> Result<()> {
        match (self, other) {
            (Self::Delta(to), Self::Delta(from)) => {
                device.copy(from.conv.view(), to.conv.view_mut())?;
                Ok(device.copy(from.recurrent.view(), to.recurrent.view_mut())?)
            }
            (Self::KeyValues(to), Self::KeyValues(from)) => {
                device.copy(from.keys.row_range(0..len)?, to.keys.row_range_mut(0..len)?)?;
                Ok(device.copy(from.values.row_range(0..len)?, to.values.row_range_mut(0..len)?)?)
            }
            _ => Err(Error::ForeignSequence),
        }
    }
}

/// Kind of a layer, with rows and columns of the two matrices that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LayerSizes {
    kind: LayerType,
    matrices: [(usize, usize); 2],
}

impl LayerSizes {
    fn new(config: &Config, kind: LayerType, capacity: usize) -> Self {
        let matrices = match kind {
            LayerType::LinearAttention => [
                (config.linear_conv_kernel_dim - 1, config.conv_dim()),
                (config.linear_num_value_heads * config.linear_key_head_dim, config.linear_value_head_dim),
            ],
            LayerType::FullAttention => [(capacity, config.key_value_dim()); 2],
        };
        Self { kind, matrices }
    }
}

/// Bytes of a sequence.
pub(crate) fn sequence_bytes(config: &Config, capacity: usize) -> usize {
    let layers = config.layer_types.iter().map(|kind| LayerSizes::new(config, *kind, capacity));
    layers.flat_map(|sizes| sizes.matrices).map(|(rows, columns)| 4 * rows * columns).sum()
}

/// The state of one sequence of tokens in every layer, all at one token count: keys and values of the softmax layers, the
/// last convolution inputs and the recurrent states of the delta-net layers.
///
/// It is independent of the model's scratch: any number of them can be kept, copied and dropped. It only grows: a
/// recurrent state cannot be taken back, so keep a copy of where you may want to return to.
#[derive(Debug)]
pub struct Sequence<B: Backend> {
    pub(crate) layers: Vec<LayerState<B>>,
    sizes: Arc<[LayerSizes]>,
    len: usize,
    capacity: usize,
    complete: bool,
}

impl<B: Backend> Sequence<B> {
    pub(crate) fn new(device: &B, config: &Config, capacity: usize) -> Result<Self> {
        let sizes = config.layer_types.iter().map(|kind| LayerSizes::new(config, *kind, capacity)).collect();
        Self::with_sizes(device, sizes, capacity)
    }

    fn with_sizes(device: &B, sizes: Arc<[LayerSizes]>, capacity: usize) -> Result<Self> {
        let layers = sizes.iter().map(|sizes| LayerState::new(device, *sizes)).collect::<Result<_>>()?;
        Ok(Self { layers, sizes, len: 0, capacity, complete: true })
    }

    /// Tokens that it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tokens that it has room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Tokens that still fit.
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// A copy with memory of its own.
    ///
    /// # Errors
    /// [`fermi_blas::Error::OutOfMemory`], [`Error::BrokenSequence`] when a pass over this one failed halfway.
    pub fn try_clone(&self, device: &B) -> Result<Self> {
        self.check_complete()?;
        let mut copy = Self::with_sizes(device, Arc::clone(&self.sizes), self.capacity)?;
        copy.copy_from(device, self)?;
        Ok(copy)
    }

    /// Becomes a copy of another sequence of the same model, without allocating.
    ///
    /// # Errors
    /// [`Error::ForeignSequence`] when the other is of another model or capacity, [`Error::BrokenSequence`] when a pass
    /// over the other failed halfway.
    pub fn copy_from(&mut self, device: &B, other: &Self) -> Result<()> {
        if self.sizes != other.sizes {
            return Err(Error::ForeignSequence);
        }
        other.check_complete()?;
        self.complete = false;
        for (to, from) in self.layers.iter_mut().zip(&other.layers) {
            to.copy_from(device, from, other.len)?;
        }
        (self.len, self.complete) = (other.len, true);
        Ok(())
    }

    /// Forgets all tokens.
    ///
    /// # Errors
    /// [`fermi_blas::Error::OutOfMemory`]
    pub fn clear(&mut self, device: &B) -> Result<()> {
        for (layer, sizes) in self.layers.iter_mut().zip(self.sizes.iter()) {
            // Keys and values beyond the length are never read, so they may stay.
            if sizes.kind == LayerType::LinearAttention {
                // The old state goes first, so that no more is held than before.
                *layer = LayerState::new(device, LayerSizes { matrices: [(0, 0); 2], ..*sizes })?;
                *layer = LayerState::new(device, *sizes)?;
            }
        }
        (self.len, self.complete) = (0, true);
        Ok(())
    }

    /// Fails unless this sequence was made for a model of this config.
    pub(crate) fn check(&self, config: &Config) -> Result<()> {
        self.check_complete()?;
        let expected = config.layer_types.iter().map(|kind| LayerSizes::new(config, *kind, self.capacity));
        if self.sizes.iter().copied().eq(expected) { Ok(()) } else { Err(Error::ForeignSequence) }
    }

    fn check_complete(&self) -> Result<()> {
        if self.complete { Ok(()) } else { Err(Error::BrokenSequence) }
    }

    /// Marks the layers as being at different token counts.
    pub(crate) fn begin(&mut self) {
        self.complete = false;
    }

    /// All layers have seen `tokens` more.
    pub(crate) fn advance(&mut self, tokens: usize) {
        self.len += tokens;
        self.complete = true;
    }
}

//! Bytes of a file as float32 values.

use half::{bf16, f16};
use rayon::prelude::*;

use crate::Q8_GROUP;

/// Values below which a conversion is not shared among threads.
pub(super) const SHARE: usize = 1 << 16;

/// How a tensor's bytes are read.
pub(super) enum Values {
    F32,
    F16,
    Bf16,
    /// 8-bit codes in rows of `columns`, with their scales.
    Q8 {
        scales: Vec<f32>,
        columns: usize,
    },
}

impl Values {
    /// Bytes a value.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q8 { .. } => 1,
        }
    }

    /// Converts whole rows, the first of them row `first` of the tensor.
    pub(super) fn widen(&self, first: usize, bytes: &[u8], values: &mut [f32]) {
        match self {
            Self::F32 => {
                let words: &[[u8; 4]] = bytes.as_chunks().0;
                share(values, words, |value, word| *value = f32::from_le_bytes(*word));
            }
            Self::F16 => {
                let words: &[[u8; 2]] = bytes.as_chunks().0;
                share(values, words, |value, word| *value = f16::from_le_bytes(*word).to_f32());
            }
            Self::Bf16 => {
                let words: &[[u8; 2]] = bytes.as_chunks().0;
                share(values, words, |value, word| *value = bf16::from_le_bytes(*word).to_f32());
            }
            Self::Q8 { scales, columns } => {
                let groups = columns.div_ceil(Q8_GROUP);
                let rows = values.chunks_mut(*columns).zip(bytes.chunks(*columns));
                for ((values, codes), scales) in rows.zip(scales[first * groups..].chunks(groups)) {
                    let parts = values.chunks_mut(Q8_GROUP).zip(codes.chunks(Q8_GROUP)).zip(scales);
                    for ((values, codes), scale) in parts {
                        for (value, code) in values.iter_mut().zip(codes) {
                            *value = f32::from(code.cast_signed()) * scale;
                        }
                    }
                }
            }
        }
    }
}

/// Fills `targets` from `sources`, one from one, on several threads when they are many.
pub(super) fn share<S: Sync, T: Send>(targets: &mut [T], sources: &[S], convert: impl Fn(&mut T, &S) + Sync) {
    let pieces = targets.par_chunks_mut(SHARE).zip(sources.par_chunks(SHARE));
    pieces.for_each(|(targets, sources)| {
        for (target, source) in targets.iter_mut().zip(sources) {
            convert(target, source);
        }
    });
}

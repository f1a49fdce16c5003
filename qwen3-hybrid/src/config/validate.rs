//! Bounds on what a config may ask for.

use super::Config;
use crate::{Error, Result};

/// Layers, so that a damaged file cannot ask for an absurd list.
pub(super) const MAX_LAYERS: usize = 4096;
/// Any width: far beyond real models, and small enough that no product of a shape's axes overflows.
const MAX_WIDTH: usize = 1 << 20;
/// Token ids.
const MAX_VOCAB: usize = 1 << 24;
/// Taps of the convolution.
const MAX_KERNEL: usize = 64;

impl Config {
    /// Checks every size. Only needed after changing a config by hand.
    ///
    /// # Errors
    /// [`Error::Size`], [`Error::Indivisible`] or [`Error::LayerCount`], naming the key.
    pub fn validate(&self) -> Result<()> {
        size("num_hidden_layers", self.num_hidden_layers, 1, MAX_LAYERS)?;
        if self.layer_types.len() != self.num_hidden_layers {
            let (layer_types, num_hidden_layers) = (self.layer_types.len(), self.num_hidden_layers);
            return Err(Error::LayerCount { layer_types, num_hidden_layers });
        }
        size("vocab_size", self.vocab_size, 1, MAX_VOCAB)?;
        size("linear_conv_kernel_dim", self.linear_conv_kernel_dim, 1, MAX_KERNEL)?;
        for (key, width) in [
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.num_key_value_heads),
            ("head_dim", self.head_dim),
            ("linear_num_key_heads", self.linear_num_key_heads),
            ("linear_num_value_heads", self.linear_num_value_heads),
            ("linear_key_head_dim", self.linear_key_head_dim),
            ("linear_value_head_dim", self.linear_value_head_dim),
        ] {
            size(key, width, 1, MAX_WIDTH)?;
        }
        for (key, width) in [
            ("num_attention_heads * head_dim", self.query_dim()),
            ("linear_num_key_heads * linear_key_head_dim", self.linear_key_dim()),
            ("linear_num_value_heads * linear_value_head_dim", self.linear_value_dim()),
        ] {
            size(key, width, 1, MAX_WIDTH)?;
        }
        divides(
            "num_attention_heads",
            self.num_attention_heads,
            "num_key_value_heads",
            self.num_key_value_heads,
        )?;
        divides(
            "linear_num_value_heads",
            self.linear_num_value_heads,
            "linear_num_key_heads",
            self.linear_num_key_heads,
        )?;
        number("rms_norm_eps", self.rms_norm_eps.into(), 0.0, 1.0)?;
        number("rope_theta", self.rope_theta.into(), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))?;
        number("partial_rotary_factor", self.partial_rotary_factor, f64::MIN_POSITIVE, 1.0)?;
        size("head_dim * partial_rotary_factor", self.rotary_dim(), 2, self.head_dim)?;
        divides("head_dim * partial_rotary_factor", self.rotary_dim(), "2", 2)
    }
}

fn size(key: &str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Size { key: key.to_owned(), value: value as u64, least: least as u64, most: most as u64 })
}

fn number(key: &'static str, value: f64, least: f64, most: f64) -> Result<()> {
    // NaN fails both comparisons.
    if value >= least && value <= most { Ok(()) } else { Err(Error::Number { key, value, least, most }) }
}

fn divides(key: &'static str, value: usize, by: &'static str, divisor: usize) -> Result<()> {
    if value.is_multiple_of(divisor) { Ok(()) } else { Err(Error::Indivisible { key, value, by, divisor }) }
}

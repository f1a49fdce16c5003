#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod activations;
mod attention;
mod backbone;
mod config;
mod delta_net;
mod embedding;
mod error;
mod head;
mod input;
mod layer;
mod mlp;
mod options;
mod sampling;
mod sequence;
mod tensors;

pub use backbone::{Backbone, Positions};
pub use config::{Config, LayerType, TensorLayout};
pub use error::{Error, Result};
pub use input::Input;
pub use options::Options;
pub use sampling::{Sampler, Sampling};
pub use sequence::Sequence;
pub use tensors::{ModelTensor, TensorKind};

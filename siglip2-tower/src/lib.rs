#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod activations;
mod attention;
mod config;
mod cpu;
mod embeddings;
mod encoder;
mod error;
#[cfg(any(feature = "cuda", feature = "emulated"))]
#[allow(unsafe_code, reason = "starting a kernel is unsafe")]
mod gpu;
mod indices;
mod layers;
mod memory_plan;
mod merger;
mod options;
mod positions;
mod slices;
mod tower;
mod vit_merger;
mod window_backend;
mod window_order;

pub use config::{Config, DownsampleMode, VisionConfig};
pub use error::{Error, Result};
pub use options::Options;
pub use positions::{PositionTable, boundaries};
pub use slices::{Grid, Slice};
pub use tower::Tower;
pub use window_backend::{WINDOW_PATCHES, WindowBackend};

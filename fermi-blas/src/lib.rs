#![doc = include_str!("../README.md")]

mod account;
mod backend;
mod blas;
mod checkpoint;
pub mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "emulated")]
mod emulated;
mod error;
#[cfg(any(feature = "cuda", feature = "emulated"))]
pub mod gpu;
mod matrix;
mod memory_plan;
mod observer;
mod row_ops;
pub mod synthetic;
#[cfg(feature = "testing")]
pub mod testing;
mod view;
mod weight;

pub use backend::{Backend, DeviceBuffer, Element, MemoryUse};
pub use blas::{Blas, Gemm, GemmBatched, Operand};
pub use checkpoint::{
    Checkpoint, CheckpointWriter, Progress, Q8_FORMAT_KEY, Q8_FORMAT_VERSION, Sharding, TensorInfo,
    TensorSpec,
};
pub use cpu::{Cpu, CpuBuffer, CpuBuilder, CpuSpan, Instructions, Profile, SharedRows, quantize};
#[cfg(feature = "cuda")]
pub use cuda::{Cuda, CudaBuilder, DeviceInfo, Driver, MathMode};
#[cfg(feature = "emulated")]
pub use emulated::{Emulated, Emulator, Order};
pub use error::{Error, Result};
pub use half::bf16;
pub use matrix::Matrix;
pub use memory_plan::MemoryPlan;
pub use observer::{Observer, Recorder, Stage};
pub use row_ops::{Activation, RotaryTable, RowOps};
pub use safetensors::Dtype;
pub use view::{BatchView, BatchViewMut, View, ViewMut};
pub use weight::{Precision, Q8, Q8_GROUP, Weight, WeightView};

//! What the examples share: the device, where models lie, the bar while they load, files and the answer on the terminal.
//!
//! Each example is one file beside this folder; its header says what it shows and how to run it.

mod battery;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(not(feature = "cuda"))]
#[path = "no_cuda.rs"]
mod cuda;
mod device;
mod exit;
mod folder;
mod generation;
mod model;
mod needle;
mod progress;
mod tensors;
mod terminal;
mod vision;

pub use battery::{Case, Outcome, Turn};
pub use cuda::describe_gpus;
pub use device::{DeviceOptions, Program};
pub use exit::{exit, line};
pub use folder::{StagedFolder, is_weights};
pub use generation::{GenerationOptions, Switch};
pub use model::{ModelOptions, bundled};
pub use needle::{Golden, Haystack, Tier};
pub use progress::Bar;
pub use tensors::TensorFile;
pub use terminal::{print, print_json, print_table, stream};
pub use vision::{image_settings, load_tower, read_slices, target_sizes};

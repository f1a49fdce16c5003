//! What the examples share: the device, where models lie, the bar while they load, files and the answer on the terminal.
//!
//! Each example is one file beside this folder; its header says what it shows and how to run it.

mod device;
mod exit;
mod folder;
mod generation;
mod model;
mod progress;
mod tensors;
mod terminal;
mod vision;

pub use device::{DeviceOptions, Program};
pub use exit::{exit, line};
pub use folder::{StagedFolder, is_weights};
pub use generation::{GenerationOptions, Switch};
pub use model::{ModelOptions, bundled};
pub use progress::Bar;
pub use tensors::TensorFile;
pub use terminal::{print, print_json, stream};
pub use vision::{image_settings, load_tower, read_slices, target_sizes};

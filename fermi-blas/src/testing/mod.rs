//! What tests of this crate and of those above it share: float64 references, tolerances, a conformance suite that every
//! backend runs, deterministic inputs and an allocator that counts.

pub mod allocation;
pub mod conformance;
mod folder;
mod held;
mod random;
pub mod reference;
pub mod tolerance;

pub use folder::Folder;
pub use held::Held;
pub use random::{uniform, uniform_ids};
pub use tolerance::{assert_close, assert_near, largest_error};

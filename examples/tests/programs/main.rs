//! The examples as a user runs them: processes with arguments, files and pipes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod battery;
mod checkpoints;
mod devices;
mod errors;
mod program;
mod tensors;

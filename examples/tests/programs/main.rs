//! The examples as a user runs them: processes with arguments, files and pipes.

mod answers;
mod checkpoints;
mod errors;
mod program;
mod tensors;

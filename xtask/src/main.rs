//! The repository's own chores: `cargo xtask NAME`.

mod check_sizes;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The repository's own chores")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fails when a source file has more than 400 lines or a function more than 80.
    CheckSizes,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::CheckSizes => check_sizes::run(),
    }
}

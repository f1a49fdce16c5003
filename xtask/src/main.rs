//! The repository's own chores: `cargo xtask NAME`.

mod audit;
mod check_sizes;
mod cuda_stubs;
mod licences;
mod names;
mod ptx;
mod workspace;

use std::path::PathBuf;

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
    /// Fails when a dependency has a licence that is not allowed, or does not come from crates.io.
    Licences,
    /// Compiles the kernels to PTX for sm_20 with clang 16 (another one: the variable CLANG).
    Ptx {
        /// Fail when a committed text differs, and write nothing.
        #[arg(long)]
        check: bool,
        /// Also assemble the texts with this ptxas, and print registers and shared memory.
        #[arg(long)]
        ptxas: Option<PathBuf>,
        /// The architecture to assemble for; a current ptxas has none of the oldest.
        #[arg(long, default_value = "sm_75")]
        architecture: String,
    },
    /// Makes stand-ins for the CUDA libraries under target/ and prints the variables that a build with them needs.
    CudaStubs {
        /// Empty libraries, for checks: the program that links them does not run.
        #[arg(long, conflicts_with = "static")]
        shared: bool,
        /// Archives that open the real libraries at first use: one program for every machine.
        #[arg(long, required_unless_present = "shared")]
        r#static: bool,
    },
    /// Checks that an example needs no CUDA function newer than CUDA 8.0.
    Audit {
        /// The example to build.
        #[arg(default_value = "describe")]
        example: String,
        /// Build in the usual folder, which was never built with other CUDA libraries.
        #[arg(long)]
        in_place: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::CheckSizes => check_sizes::run(),
        Task::Licences => licences::run(),
        Task::Ptx { check, ptxas, architecture } => {
            ptx::run(check)?;
            ptxas.map_or(Ok(()), |ptxas| ptx::resources(&ptxas, &architecture))
        }
        Task::CudaStubs { shared: true, .. } => cuda_stubs::run(cuda_stubs::Kind::Shared),
        Task::CudaStubs { .. } => cuda_stubs::run(cuda_stubs::Kind::Static),
        Task::Audit { example, in_place } => audit::run(&example, in_place),
    }
}

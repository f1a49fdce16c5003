//! Where the examples can compute: the processor, and the NVIDIA GPUs with what they support.
//!
//! A machine without GPU or driver is no error: it says so.
//!
//! ```sh
//! cargo run --release -p examples --example devices
//! ```

use std::process::ExitCode;
use std::thread::available_parallelism;

use anyhow::Result;
use clap::Parser;
use examples::{describe_gpus, print_table};
use fermi_blas::Instructions;

/// Lists the devices of this machine.
#[derive(Parser)]
struct Args {}

fn main() -> ExitCode {
    Args::parse();
    examples::exit(run)
}

fn run() -> Result<()> {
    let threads = available_parallelism()?;
    let instructions = match Instructions::detect() {
        Instructions::Avx512 => "AVX-512",
        Instructions::Avx2 => "AVX2",
        _ => "no more than the target's own",
    };
    let mut rows = vec![["device", "what it is"].map(String::from)];
    rows.push(["cpu".to_owned(), format!("{threads} threads, vector instructions: {instructions}")]);
    rows.extend(describe_gpus());
    print_table(&rows)
}

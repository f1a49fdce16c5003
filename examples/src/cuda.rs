//! NVIDIA GPUs, in a build with CUDA.

use anyhow::{Context, Result};
use fermi_blas::{Cuda, DeviceInfo};

/// The GPU of this index.
pub(crate) fn open(index: usize) -> Result<Cuda> {
    Cuda::new(index).with_context(|| format!("cuda:{index}"))
}

/// What there is to say of NVIDIA GPUs: a device's name and a line about it.
pub fn describe_gpus() -> Vec<[String; 2]> {
    match Cuda::devices() {
        Err(error) => vec![["cuda".to_owned(), error.to_string()]],
        Ok(cards) if cards.is_empty() => vec![["cuda", "the driver sees no card"].map(String::from)],
        Ok(cards) => cards.iter().flat_map(describe).collect(),
    }
}

fn describe(card: &DeviceInfo) -> Vec<[String; 2]> {
    let DeviceInfo {
        index, name, capability: (major, minor), memory, multiprocessors, driver_version, ..
    } = card;
    let gib = *memory as f64 / f64::from(1 << 30);
    let facts = format!(
        "{name}, compute capability {major}.{minor}, {gib:.1} GiB, {multiprocessors} multiprocessors, driver for CUDA {}.{}",
        driver_version / 1_000,
        driver_version % 1_000 / 10
    );
    // Opening it is the only way to know that it can be used.
    let libraries = match Cuda::new(*index).map(|card| card.cublas_version()) {
        Ok(number) => format!("cuBLAS {} ({number})", cublas_major(number)),
        Err(error) => format!("cannot be used: {error}"),
    };
    let rows = [facts, libraries, format!("computes in {}", arithmetic(*major))];
    rows.into_iter().enumerate().map(|(row, text)| [label(*index, row), text]).collect()
}

/// The device's name stands before its first row only.
fn label(index: usize, row: usize) -> String {
    if row == 0 { format!("cuda:{index}") } else { String::new() }
}

/// cuBLAS counts 10,000 a major version since the twelfth, and counted 1,000 before.
fn cublas_major(number: i32) -> i32 {
    if number < 100_000 { number / 1_000 } else { number / 10_000 }
}

/// What a card's cores multiply, by the major number of its compute capability.
fn arithmetic(major: i32) -> &'static str {
    match major {
        ..=6 => "float32",
        7 => "float32 (its tensor cores know float16 only)",
        _ => "float32, and on tensor cores TF32 and bfloat16",
    }
}

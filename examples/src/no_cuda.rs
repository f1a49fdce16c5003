//! NVIDIA GPUs, in a build without CUDA: there are none.

use anyhow::{Result, bail};
use fermi_blas::Cpu;

/// An error; its type stands for a device that there is none of.
pub(crate) fn open(index: usize) -> Result<Cpu> {
    bail!("cuda:{index}: this program was built without CUDA (--device cpu and auto run anywhere)")
}

/// What there is to say of NVIDIA GPUs: a device's name and a line about it.
pub fn describe_gpus() -> Vec<[String; 2]> {
    vec![["cuda", "this program was built without CUDA (--features cuda)"].map(String::from)]
}

//! Which device an example runs on.

use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use fermi_blas::Cpu;
use vlm_pipeline::VlmBackend;

use crate::cuda;

/// What an example does, written once for every device.
pub trait Program {
    /// Runs it.
    ///
    /// # Errors
    /// Whatever goes wrong; the program then ends with that error.
    fn run<B: VlmBackend>(self, device: &B) -> Result<()>;
}

/// The device, on the command line.
#[derive(Args, Clone, Copy, Debug)]
pub struct DeviceOptions {
    /// Where to compute: cpu, cuda, cuda:N (the N-th GPU), or auto (a GPU if there is one)
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Choice,
    /// Threads of the CPU [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Cpu,
    Cuda(usize),
    Auto,
}

impl FromStr for Choice {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let expected = "expected cpu, cuda, cuda:N or auto";
        match name {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "auto" => Ok(Self::Auto),
            _ => {
                let index = name.strip_prefix("cuda:").and_then(|index| index.parse().ok());
                index.map(Self::Cuda).ok_or(expected)
            }
        }
    }
}

impl DeviceOptions {
    /// Opens the device and runs `program` on it.
    ///
    /// # Errors
    /// When the device cannot be opened; else as the program.
    pub fn run(self, program: impl Program) -> Result<()> {
        let gpu = match self.device {
            Choice::Cpu => None,
            Choice::Cuda(index) => Some(cuda::open(index)?),
            Choice::Auto => cuda::open(0).ok(),
        };
        match gpu {
            Some(gpu) => program.run(&gpu),
            None => program.run(&self.cpu()?),
        }
    }

    fn cpu(self) -> Result<Cpu> {
        Ok(match self.threads {
            Some(threads) => Cpu::with_threads(threads.into())?,
            None => Cpu::new()?,
        })
    }
}

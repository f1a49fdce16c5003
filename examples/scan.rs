//! The gated delta rule alone: reads a case's inputs from a safetensors file, writes its outputs and final state.
//!
//! Queries and keys are normalised and queries scaled by 1/√Dk, as in the model. With T tokens, Hk key heads of width Dk and
//! Hv value heads of width Dv the file holds NAME.q and NAME.k `[T, Hk, Dk]`, NAME.v `[T, Hv, Dv]`, NAME.g (log decay) and
//! NAME.beta `[T, Hv]`, and NAME.s0 `[Hv, Dk, Dv]`, without which the state starts at zero. What comes out is `out`
//! `[T, Hv, Dv]` and `s1` `[Hv, Dk, Dv]`.
//!
//! ```sh
//! cargo run --release -p examples --example scan -- --input cases.safetensors --case NAME --mode chunked --out out.safetensors
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use examples::{DeviceOptions, Program, TensorFile};
use fermi_blas::{Checkpoint, Matrix};
use gdn_scan::{Scan, ScanInputs, ScanShape};
use vlm_pipeline::VlmBackend;

/// Runs the gated delta rule on a case of a file.
#[derive(Parser)]
struct Args {
    /// The safetensors file that holds the case
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The case's name
    #[arg(long, value_name = "NAME")]
    case: String,
    /// How the tokens are gone through
    #[arg(long, value_enum)]
    mode: Mode,
    /// Tokens of a chunk
    #[arg(long, value_name = "N", default_value_t = 64)]
    chunk: usize,
    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    device: DeviceOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// In chunks, by matrix products
    Chunked,
    /// Token by token in one call
    Sequential,
    /// One call a token, as when an answer is generated
    Step,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| args.device.run(args))
}

impl Program for Args {
    fn run<B: VlmBackend>(self, device: &B) -> Result<()> {
        ensure!(self.input.is_file(), "{}: no such file", self.input.display());
        let case = Case { file: Checkpoint::open(&self.input)?, name: self.case };
        let [tokens, key_heads, key_width] = case.shape("q")?;
        let [_, value_heads, value_width] = case.shape("v")?;
        let shape = ScanShape::new(key_heads, value_heads, key_width, value_width)?;
        let state_shape = [value_heads, key_width, value_width];

        let q = case.matrix(device, "q", &[tokens, key_heads, key_width])?;
        let k = case.matrix(device, "k", &[tokens, key_heads, key_width])?;
        let v = case.matrix(device, "v", &[tokens, value_heads, value_width])?;
        let g = case.matrix(device, "g", &[tokens, value_heads])?;
        let beta = case.matrix(device, "beta", &[tokens, value_heads])?;
        let mut state = case.state(device, state_shape)?;
        let mut out = Matrix::zeros(device, tokens, value_heads * value_width)?;

        let inputs = ScanInputs { q: q.view(), k: k.view(), v: v.view(), g: g.view(), beta: beta.view() };
        match self.mode {
            Mode::Chunked => {
                let scratch_len = device.chunk_scratch_len(shape, tokens, self.chunk);
                let mut scratch = Matrix::zeros(device, 1, scratch_len)?;
                let scan = Scan::new(shape, inputs, state.view_mut(), out.view_mut())?;
                device.chunk_forward(scan, self.chunk, scratch.view_mut())?;
            }
            Mode::Sequential => {
                device.recurrent_forward(Scan::new(shape, inputs, state.view_mut(), out.view_mut())?)?;
            }
            Mode::Step => {
                for token in 0..tokens {
                    let row = token..token + 1;
                    let inputs = ScanInputs {
                        q: q.row_range(row.clone())?,
                        k: k.row_range(row.clone())?,
                        v: v.row_range(row.clone())?,
                        g: g.row_range(row.clone())?,
                        beta: beta.row_range(row.clone())?,
                    };
                    let out = out.row_range_mut(row)?;
                    device.recurrent_forward(Scan::new(shape, inputs, state.view_mut(), out)?)?;
                }
            }
        }

        let mut file = TensorFile::default();
        file.add("out", &[tokens, value_heads, value_width], out.to_vec(device)?);
        file.add("s1", &state_shape, state.to_vec(device)?);
        file.save(&self.out)
    }
}

/// One case's tensors.
struct Case {
    file: Checkpoint,
    name: String,
}

impl Case {
    fn shape<const N: usize>(&self, tensor: &str) -> Result<[usize; N]> {
        let (path, name) = (self.file.path().display(), format!("{}.{tensor}", self.name));
        let info = self.file.info(&name).with_context(|| format!("{path}: has no tensor {name}"))?;
        let shape = info.shape.as_slice().try_into();
        shape.with_context(|| format!("{path}: {name} has shape {:?}, expected {N} axes", info.shape))
    }

    fn matrix<B: VlmBackend>(&self, device: &B, tensor: &str, shape: &[usize]) -> Result<Matrix<B>> {
        Ok(self.file.load_matrix(device, &format!("{}.{tensor}", self.name), shape)?)
    }

    fn state<B: VlmBackend>(&self, device: &B, shape: [usize; 3]) -> Result<Matrix<B>> {
        let name = format!("{}.s0", self.name);
        let (rows, columns) = (shape[0] * shape[1], shape[2]);
        if !self.file.contains(&name) {
            return Ok(Matrix::zeros(device, rows, columns)?);
        }
        Ok(Matrix::from_slice(device, rows, columns, &self.file.load_vec(&name, &shape)?)?)
    }
}

//! A layer's delta rule on random inputs, for the benches of the scan on any device: 16 heads of 128, as in the model.

use fermi_blas::Matrix;
use fermi_blas::synthetic::{Distribution, values};
use gdn_scan::{Result, Scan, ScanBackend, ScanInputs, ScanShape};

const HEADS: usize = 16;
const WIDTH: usize = 128;

/// A layer's inputs for some tokens: q, k and v are columns of one matrix, as the convolution leaves them.
#[derive(Debug)]
pub struct ScanLayer<B: ScanBackend> {
    /// Where it lies.
    pub device: B,
    /// `[T, 3 * H * D]`
    pub qkv: Matrix<B>,
    g: Matrix<B>,
    beta: Matrix<B>,
    state: Matrix<B>,
    out: Matrix<B>,
}

impl<B: ScanBackend> ScanLayer<B> {
    /// The inputs of `tokens` tokens.
    ///
    /// # Errors
    /// [`fermi_blas::Error::OutOfMemory`].
    pub fn new(device: &B, tokens: usize) -> fermi_blas::Result<Self> {
        let matrix = |name, rows, columns, center, scale| {
            let values = values(name, rows * columns, 1, Distribution { center, scale });
            Matrix::from_slice(device, rows, columns, &values)
        };
        Ok(Self {
            qkv: matrix("qkv", tokens, 3 * HEADS * WIDTH, 0.0, 1.0)?,
            g: matrix("g", tokens, HEADS, -0.05, 0.05)?,
            beta: matrix("beta", tokens, HEADS, 0.5, 0.5)?,
            state: Matrix::zeros(device, HEADS * WIDTH, WIDTH)?,
            out: Matrix::zeros(device, tokens, HEADS * WIDTH)?,
            device: device.clone(),
        })
    }

    /// Scratch for chunks of this length.
    ///
    /// # Errors
    /// [`fermi_blas::Error::OutOfMemory`].
    pub fn scratch(&self, chunk_len: usize) -> Result<Matrix<B>> {
        let len = self.device.chunk_scratch_len(shape()?, self.qkv.rows(), chunk_len);
        Ok(Matrix::zeros(&self.device, 1, len)?)
    }

    /// One scan, sequential, or in chunks of a length with the scratch for it.
    ///
    /// # Errors
    /// Whatever the device reports.
    pub fn run(&mut self, chunk: Option<(usize, &mut Matrix<B>)>) -> Result<()> {
        let part =
            |index: usize| self.qkv.view().column_range(index * HEADS * WIDTH..(index + 1) * HEADS * WIDTH);
        let (g, beta) = (self.g.view(), self.beta.view());
        let inputs = ScanInputs { q: part(0)?, k: part(1)?, v: part(2)?, g, beta };
        let scan = Scan::new(shape()?, inputs, self.state.view_mut(), self.out.view_mut())?;
        match chunk {
            None => self.device.recurrent_forward(scan),
            Some((chunk_len, scratch)) => self.device.chunk_forward(scan, chunk_len, scratch.view_mut()),
        }
    }
}

fn shape() -> Result<ScanShape> {
    ScanShape::new(HEADS, HEADS, WIDTH, WIDTH)
}

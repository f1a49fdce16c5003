//! Table 2: is the chunked scan faster than the sequential one, by how much, and where does its time go? 16 heads of 128.
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_scan
//! ```

use benches::card::{self, Outcome, REPETITIONS};
use fermi_blas::synthetic::{Distribution, values};
use fermi_blas::{Cuda, Matrix};
use gdn_scan::{Scan, ScanBackend, ScanInputs, ScanShape};

const HEADS: usize = 16;
const WIDTH: usize = 128;
const CHUNKS: [usize; 3] = [32, 64, 128];

/// The chunk whose time is shown by component.
const SHOWN: usize = 64;

/// A layer's inputs: q, k and v are columns of one matrix, as the convolution leaves them.
struct Layer {
    device: Cuda,
    qkv: Matrix<Cuda>,
    g: Matrix<Cuda>,
    beta: Matrix<Cuda>,
    state: Matrix<Cuda>,
    out: Matrix<Cuda>,
}

impl Layer {
    fn new(device: &Cuda, tokens: usize) -> fermi_blas::Result<Self> {
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

    fn run(&mut self, chunk: Option<(usize, &mut Matrix<Cuda>)>) -> gdn_scan::Result<()> {
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

fn shape() -> gdn_scan::Result<ScanShape> {
    ScanShape::new(HEADS, HEADS, WIDTH, WIDTH)
}

fn measure(device: &Cuda, tokens: usize) -> Outcome {
    let mut layer = Layer::new(device, tokens)?;
    let sequential = card::seconds(device, REPETITIONS, 1, |_| layer.run(None))?;
    card::line(format_args!("\n## {tokens} tokens"));
    card::head(&["scan", "ms", "of the sequential speed"]);
    card::row(&["sequential".to_owned(), format!("{:.3}", 1e3 * sequential), "1.00".to_owned()]);
    for chunk_len in CHUNKS {
        let len = device.chunk_scratch_len(shape()?, tokens, chunk_len);
        let mut scratch = Matrix::zeros(device, 1, len)?;
        let time = card::seconds(device, REPETITIONS, 1, |_| layer.run(Some((chunk_len, &mut scratch))))?;
        let name = format!("chunked by {chunk_len}");
        card::row(&[name, format!("{:.3}", 1e3 * time), format!("{:.2}", sequential / time)]);
    }
    let mut scratch = Matrix::zeros(device, 1, device.chunk_scratch_len(shape()?, tokens, SHOWN))?;
    device.set_profiling(true);
    (0..REPETITIONS).try_for_each(|_| layer.run(Some((SHOWN, &mut scratch))))?;
    device.set_profiling(false);
    card::line(format_args!(
        "\n{REPETITIONS} runs in chunks of {SHOWN}, by component:\n\n{}",
        device.profile()?
    ));
    Ok(())
}

fn main() -> Outcome {
    let device = card::open("The gated delta rule")?;
    [2_048, 512].into_iter().try_for_each(|tokens| measure(&device, tokens))?;
    let mut step = Layer::new(&device, 1)?;
    let time = card::seconds(&device, REPETITIONS, 20, |_| step.run(None))?;
    card::line(format_args!("One token of decode: {:.2} us.", 1e6 * time));
    Ok(())
}

//! Is the chunked scan faster than the sequential one, and by how much? 16 heads of 128, as in the model, two threads.
//!
//! ```sh
//! cargo bench -p benches --bench scan
//! ```

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fermi_blas::synthetic::{Distribution, values};
use fermi_blas::{Cpu, Matrix};
use gdn_scan::{CausalConv, Scan, ScanBackend, ScanInputs, ScanShape};

const HEADS: usize = 16;
const WIDTH: usize = 128;
const THREADS: usize = 2;

/// A layer's inputs for `tokens` tokens: q, k and v are columns of one matrix, as the convolution leaves them.
struct Layer {
    device: Cpu,
    qkv: Matrix<Cpu>,
    g: Matrix<Cpu>,
    beta: Matrix<Cpu>,
    state: Matrix<Cpu>,
    out: Matrix<Cpu>,
}

impl Layer {
    fn new(tokens: usize) -> fermi_blas::Result<Self> {
        let device = Cpu::with_threads(THREADS)?;
        let matrix = |name, rows, columns, center, scale| {
            let values = values(name, rows * columns, 1, Distribution { center, scale });
            Matrix::from_slice(&device, rows, columns, &values)
        };
        Ok(Self {
            qkv: matrix("qkv", tokens, 3 * HEADS * WIDTH, 0.0, 1.0)?,
            g: matrix("g", tokens, HEADS, -0.05, 0.05)?,
            beta: matrix("beta", tokens, HEADS, 0.5, 0.5)?,
            state: Matrix::zeros(&device, HEADS * WIDTH, WIDTH)?,
            out: Matrix::zeros(&device, tokens, HEADS * WIDTH)?,
            device,
        })
    }

    fn run(&mut self, chunk: Option<(usize, &mut Matrix<Cpu>)>) -> gdn_scan::Result<()> {
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

fn scan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan");
    group.sample_size(20);
    for tokens in [512, 2048] {
        let mut layer = Layer::new(tokens).expect("memory for a layer");
        group.bench_function(BenchmarkId::new("sequential", tokens), |bencher| {
            bencher.iter(|| layer.run(None).expect("fitting sizes"));
        });
        for chunk_len in [16, 32, 64, 128] {
            let shape = shape().expect("dividing heads");
            let len = layer.device.chunk_scratch_len(shape, tokens, chunk_len);
            let mut scratch = Matrix::zeros(&layer.device, 1, len).expect("memory for scratch");
            group.bench_function(BenchmarkId::new(format!("chunked by {chunk_len}"), tokens), |bencher| {
                bencher.iter(|| layer.run(Some((chunk_len, &mut scratch))).expect("fitting sizes"));
            });
        }
    }
    let mut layer = Layer::new(1).expect("memory for a layer");
    group.bench_function(BenchmarkId::new("sequential", 1), |bencher| {
        bencher.iter(|| layer.run(None).expect("fitting sizes"));
    });
    group.finish();
}

fn convolution(criterion: &mut Criterion) {
    let tokens = 512;
    let layer = Layer::new(tokens).expect("memory for a layer");
    let channels = layer.qkv.columns();
    let matrix = |rows| Matrix::zeros(&layer.device, rows, channels).expect("memory");
    let (weight, mut state, mut out) = (matrix(4), matrix(3), matrix(tokens));
    criterion.bench_function("scan/causal_conv/512", |bencher| {
        bencher.iter(|| {
            CausalConv::new(layer.qkv.view(), weight.view(), state.view_mut(), out.view_mut())
                .and_then(|conv| layer.device.causal_conv(conv))
                .expect("fitting sizes");
        });
    });
}

criterion_group!(benches, scan, convolution);
criterion_main!(benches);

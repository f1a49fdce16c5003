//! Is the chunked scan faster than the sequential one, and by how much? 16 heads of 128, as in the model, two threads.
//!
//! ```sh
//! cargo bench -p benches --bench scan
//! ```

use benches::scan_layer::ScanLayer;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fermi_blas::{Cpu, Matrix};
use gdn_scan::{CausalConv, ScanBackend};

const THREADS: usize = 2;

fn layer(tokens: usize) -> ScanLayer<Cpu> {
    let device = Cpu::with_threads(THREADS).expect("threads");
    ScanLayer::new(&device, tokens).expect("memory for a layer")
}

fn scan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan");
    group.sample_size(20);
    for tokens in [512, 2048] {
        let mut layer = layer(tokens);
        group.bench_function(BenchmarkId::new("sequential", tokens), |bencher| {
            bencher.iter(|| layer.run(None).expect("fitting sizes"));
        });
        for chunk_len in [16, 32, 64, 128] {
            let mut scratch = layer.scratch(chunk_len).expect("memory for scratch");
            group.bench_function(BenchmarkId::new(format!("chunked by {chunk_len}"), tokens), |bencher| {
                bencher.iter(|| layer.run(Some((chunk_len, &mut scratch))).expect("fitting sizes"));
            });
        }
    }
    let mut layer = layer(1);
    group.bench_function(BenchmarkId::new("sequential", 1), |bencher| {
        bencher.iter(|| layer.run(None).expect("fitting sizes"));
    });
    group.finish();
}

fn convolution(criterion: &mut Criterion) {
    let tokens = 512;
    let layer = layer(tokens);
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

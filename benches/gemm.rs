//! How fast are matrix products? Projections, attention's strided ones, the scan's small batched ones and small prefills
//! with 8-bit weights; an element is a multiply-add's two operations, so Gelem/s are GFLOP/s.
//!
//! `cargo bench -p benches --bench gemm`

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fermi_blas::{Blas, Cpu, Gemm, GemmBatched, Matrix, Q8, Weight, quantize, synthetic};

fn matrix(device: &Cpu, rows: usize, columns: usize) -> Matrix<Cpu> {
    let values = synthetic::weight("m", &[rows, columns], 0);
    Matrix::from_slice(device, rows, columns, &values).expect("memory")
}

fn operations(m: usize, k: usize, n: usize) -> Throughput {
    Throughput::Elements(2 * (m * k * n) as u64)
}

/// x · Wᵀ in float32: backbone and tower.
fn projections(criterion: &mut Criterion) {
    let device = Cpu::new().expect("threads");
    let mut group = criterion.benchmark_group("projection");
    group.sample_size(20);
    for (m, k, n) in
        [(512, 1024, 3584), (512, 3584, 1024), (1024, 1152, 4304), (1024, 4304, 1152), (64, 1024, 3584)]
    {
        let (x, w, mut y) = (matrix(&device, m, k), matrix(&device, n, k), matrix(&device, m, n));
        group.throughput(operations(m, k, n));
        group.bench_function(BenchmarkId::from_parameter(format!("{m}x{k}x{n}")), |bencher| {
            device.install(|| {
                bencher.iter(|| {
                    let product = Gemm::new(x.view(), w.view().t(), y.view_mut()).expect("sizes fit");
                    device.gemm(product).expect("product");
                });
            });
        });
    }
}

/// Heads side by side in a row: 256 query rows against all keys, then the scores against the values.
fn attention(criterion: &mut Criterion) {
    let device = Cpu::new().expect("threads");
    let mut group = criterion.benchmark_group("attention");
    group.sample_size(20);
    for (name, heads, rows, keys, width) in [("tower", 16, 256, 1024, 72), ("backbone", 8, 256, 2048, 256)] {
        let (q, k) = (matrix(&device, rows, heads * width), matrix(&device, keys, heads * width));
        let (mut s, mut y) = (matrix(&device, heads * rows, keys), matrix(&device, rows, heads * width));
        group.throughput(operations(heads * rows, width, keys));
        group.bench_function(BenchmarkId::new("scores", name), |bencher| {
            device.install(|| {
                bencher.iter(|| {
                    let (q, k) = (q.view().heads(heads).expect("fits"), k.view().heads(heads).expect("fits"));
                    let s = s.view_mut().blocks(heads).expect("fits");
                    device.gemm_batched(GemmBatched::new(q, k.t(), s).expect("fits")).expect("product");
                });
            });
        });
        group.bench_function(BenchmarkId::new("values", name), |bencher| {
            device.install(|| {
                bencher.iter(|| {
                    let (s, v) =
                        (s.view().blocks(heads).expect("fits"), k.view().heads(heads).expect("fits"));
                    let y = y.view_mut().heads(heads).expect("fits");
                    device.gemm_batched(GemmBatched::new(s, v, y).expect("fits")).expect("product");
                });
            });
        });
    }
}

/// The chunked scan's products.
fn small_batched(criterion: &mut Criterion) {
    let device = Cpu::new().expect("threads");
    let mut group = criterion.benchmark_group("batched");
    for (batch, m, k, n) in [(128, 64, 64, 128), (128, 64, 128, 64), (16, 128, 64, 128), (16, 64, 128, 64)] {
        let a = matrix(&device, batch * m, k);
        let (b, mut c) = (matrix(&device, batch * k, n), matrix(&device, batch * m, n));
        group.throughput(operations(batch * m, k, n));
        group.bench_function(BenchmarkId::from_parameter(format!("{batch}x {m}x{k}x{n}")), |bencher| {
            device.install(|| {
                bencher.iter(|| {
                    let (a, b) =
                        (a.view().blocks(batch).expect("fits"), b.view().blocks(batch).expect("fits"));
                    let c = c.view_mut().blocks(batch).expect("fits");
                    device.gemm_batched(GemmBatched::new(a, b, c).expect("fits")).expect("product");
                });
            });
        });
    }
}

/// A few rows against an 8-bit weight.
fn few_rows(criterion: &mut Criterion) {
    let device = Cpu::new().expect("threads");
    let mut group = criterion.benchmark_group("q8 3584x1024");
    let (rows, columns) = (3584, 1024);
    let (codes, scales) = quantize(&synthetic::weight("w", &[rows, columns], 0), columns);
    let weight = Weight::Q8(Q8 {
        codes: Matrix::from_slice(&device, rows, columns, &codes).expect("memory"),
        scales: Matrix::from_slice(&device, rows, columns / 64, &scales).expect("memory"),
    });
    let mut scratch = Matrix::zeros(&device, 1, weight.multiply_scratch_len()).expect("memory");
    for tokens in [1, 2, 4, 8, 16, 64, 512] {
        let (x, mut y) = (matrix(&device, tokens, columns), matrix(&device, tokens, rows));
        group.throughput(operations(tokens, columns, rows));
        group.bench_function(BenchmarkId::from_parameter(tokens), |bencher| {
            device.install(|| {
                bencher.iter(|| {
                    let result = weight.multiply(&device, x.view(), y.view_mut(), scratch.view_mut());
                    result.expect("sizes fit");
                });
            });
        });
    }
}

criterion_group!(benches, projections, attention, small_batched, few_rows);
criterion_main!(benches);

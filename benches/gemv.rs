//! How fast does decoding read weights? One activation row against 8-bit, bfloat16 and float32 weights, in GB/s.
//!
//! `cargo bench -p benches --bench gemv`

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fermi_blas::{Blas, Cpu, Matrix, Precision, Q8, Weight, bf16, quantize, synthetic};

/// Output and input features: the head, and the backbone's projections.
const SIZES: [(usize, usize); 4] = [(248_094, 1024), (6144, 1024), (3584, 1024), (1024, 3584)];

fn weight(device: &Cpu, precision: Precision, rows: usize, columns: usize) -> (Weight<Cpu>, usize) {
    let values = synthetic::weight("w", &[rows, columns], 0);
    match precision {
        Precision::F32 => {
            let weight = Weight::F32(Matrix::from_slice(device, rows, columns, &values).expect("memory"));
            (weight, values.len() * 4)
        }
        Precision::Bf16 => {
            let values: Vec<bf16> = values.iter().map(|x| bf16::from_f32(*x)).collect();
            let weight = Weight::Bf16(Matrix::from_slice(device, rows, columns, &values).expect("memory"));
            (weight, values.len() * 2)
        }
        Precision::Q8 => {
            let (codes, scales) = quantize(&values, columns);
            let weight = Weight::Q8(Q8 {
                codes: Matrix::from_slice(device, rows, columns, &codes).expect("memory"),
                scales: Matrix::from_slice(device, rows, columns.div_ceil(64), &scales).expect("memory"),
            });
            (weight, codes.len() + 4 * scales.len())
        }
    }
}

fn gemv(criterion: &mut Criterion) {
    let device = Cpu::new().expect("threads");
    for (rows, columns) in SIZES {
        let mut group = criterion.benchmark_group(format!("gemv {rows}x{columns}"));
        group.sample_size(20);
        for precision in [Precision::Q8, Precision::Bf16, Precision::F32] {
            let (weight, bytes) = weight(&device, precision, rows, columns);
            let x = Matrix::from_slice(&device, 1, columns, &synthetic::weight("x", &[1, columns], 0));
            let (x, mut y) = (x.expect("memory"), Matrix::zeros(&device, 1, rows).expect("memory"));
            group.throughput(Throughput::Bytes(bytes as u64));
            let id = BenchmarkId::from_parameter(format!("{precision:?}"));
            group.bench_function(id, |bencher| {
                device.install(|| {
                    bencher.iter(|| device.gemv(weight.view(), x.view(), y.view_mut()).expect("sizes fit"));
                });
            });
        }
    }
}

criterion_group!(benches, gemv);
criterion_main!(benches);

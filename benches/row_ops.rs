//! How fast are the row operations? Norms, softmax, activations and rotary at the models' widths, per element; and what
//! handing work to the threads costs.
//!
//! `cargo bench -p benches --bench row_ops`

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fermi_blas::{Activation, Cpu, Instructions, Matrix, RotaryTable, RowOps, synthetic};

fn matrix(device: &Cpu, rows: usize, columns: usize) -> Matrix<Cpu> {
    let values = synthetic::weight("m", &[rows, columns], 0);
    Matrix::from_slice(device, rows, columns, &values).expect("memory")
}

fn row_ops(criterion: &mut Criterion) {
    let (rows, columns) = (1024, 1152);
    for instructions in [Instructions::Baseline, Instructions::Avx2, Instructions::Avx512] {
        let device = Cpu::builder().instructions(instructions).build().expect("threads");
        if device.instructions() != instructions {
            continue;
        }
        let mut group = criterion.benchmark_group(format!("{instructions:?} {rows}x{columns}"));
        group.sample_size(20).throughput(Throughput::Elements((rows * columns) as u64));
        let (x, mut y) = (matrix(&device, rows, columns), matrix(&device, rows, columns));
        let weight = matrix(&device, 1, columns);
        let mut bench = |name: &str, work: &mut (dyn FnMut() + Send)| {
            group.bench_function(name, |bencher| device.install(|| bencher.iter(&mut *work)));
        };
        bench("layer_norm", &mut || {
            let (w, y) = (weight.view(), y.view_mut());
            device.layer_norm(x.view(), w, w, 1e-6, y).expect("fits");
        });
        bench("rms_norm", &mut || {
            device.rms_norm(x.view(), weight.view(), 1e-6, y.view_mut()).expect("fits");
        });
        bench("softmax", &mut || device.softmax_in_place(y.view_mut(), 0.1).expect("fits"));
        bench("add", &mut || device.add_in_place(y.view_mut(), x.view()).expect("fits"));
        for activation in [Activation::Silu, Activation::GeluTanh, Activation::GeluErf] {
            bench(&format!("{activation:?}"), &mut || {
                device.activate_in_place(activation, y.view_mut()).expect("fits");
            });
        }
    }
}

/// Decoding works on one row at a time: 8 heads of 256, 1024 features.
fn one_row(criterion: &mut Criterion) {
    let device = Cpu::new().expect("threads");
    let mut group = criterion.benchmark_group("one row");
    let (x, mut y, weight) = (matrix(&device, 1, 1024), matrix(&device, 1, 1024), matrix(&device, 1, 1024));
    let mut q = matrix(&device, 1, 8 * 256);
    let table = RotaryTable::new(&device, 8, 64, 1e7).expect("memory");
    let position = Matrix::from_slice(&device, 1, 1, &[5u32]).expect("memory");
    let logits = matrix(&device, 1, 248_094);
    let mut index = Matrix::zeros(&device, 1, 1).expect("memory");
    let mut bench = |name: &str, work: &mut (dyn FnMut() + Send)| {
        group.bench_function(name, |bencher| device.install(|| bencher.iter(&mut *work)));
    };
    bench("rms_norm", &mut || device.rms_norm(x.view(), weight.view(), 1e-6, y.view_mut()).expect("fits"));
    bench("rotary", &mut || {
        let q = q.view_mut().heads(8).expect("fits");
        device.rotary_in_place(q, position.view(), &table).expect("fits");
    });
    bench("argmax", &mut || device.argmax(logits.view(), index.view_mut()).expect("fits"));
    for count in [2, 4, 16] {
        bench(&format!("share {count}"), &mut || {
            device.for_each(count, usize::MAX, |index| {
                std::hint::black_box(index);
            });
        });
    }
}

criterion_group!(benches, row_ops, one_row);
criterion_main!(benches);

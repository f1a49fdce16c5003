//! Several threads at once (case X8), and what the number of threads may change.

use fermi_blas::testing::{uniform, uniform_ids};
use fermi_blas::{Blas, Cpu, Gemm, Matrix, RowOps};

const SIZES: [(usize, usize, usize); 4] = [(1, 64, 33), (17, 130, 65), (64, 64, 128), (96, 200, 150)];

/// One product of each size; `round` varies the values.
fn products(device: &Cpu, round: usize) -> Vec<f32> {
    let (m, k, n) = SIZES[round % SIZES.len()];
    let matrix = |name: &str, rows: usize, columns: usize| {
        let values = uniform(&format!("{name}{round}"), rows * columns);
        Matrix::from_slice(device, rows, columns, &values).expect("memory")
    };
    let (a, b, mut c) = (matrix("a", m, k), matrix("b", n, k), matrix("c", m, n));
    device.gemm(Gemm::new(a.view(), b.view().t(), c.view_mut()).expect("sizes fit")).expect("product");
    c.to_vec(device).expect("read")
}

#[test]
fn x8_eight_threads_with_their_own_handles_give_the_serial_result() {
    let serial_device = Cpu::with_threads(2).unwrap();
    let serial: Vec<Vec<f32>> = (0..200).map(|round| products(&serial_device, round)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let serial = &serial;
            scope.spawn(move || {
                let device = Cpu::with_threads(2).unwrap();
                for step in 0..200 {
                    // Each thread goes through the products in an order of its own.
                    let round = (step * 7 + thread * 31) % 200;
                    assert_eq!(products(&device, round), serial[round], "thread {thread}, product {round}");
                }
            });
        }
    });
}

#[test]
fn x8_eight_threads_may_share_one_handle() {
    let device = Cpu::with_threads(3).unwrap();
    let serial: Vec<Vec<f32>> = (0..20).map(|round| products(&device, round)).collect();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for (round, expected) in serial.iter().enumerate() {
                    assert_eq!(&products(&device, round), expected);
                }
            });
        }
    });
}

#[test]
fn row_operations_do_not_depend_on_the_number_of_threads() {
    let (rows, columns) = (300, 129);
    let run = |threads: usize| {
        let device = Cpu::with_threads(threads).unwrap();
        let values = uniform("x", rows * columns);
        let mut x = Matrix::from_slice(&device, rows, columns, &values).unwrap();
        let weight = Matrix::from_slice(&device, 1, columns, &values[..columns]).unwrap();
        let positions = uniform_ids("positions", rows, columns as u32);
        let positions = Matrix::from_slice(&device, 1, rows, &positions).unwrap();
        device.rms_norm_in_place(x.view_mut().heads(1).unwrap(), weight.view(), 1e-6).unwrap();
        device.causal_softmax_in_place(x.view_mut(), 1, positions.view(), 3.0).unwrap();
        x.to_vec(&device).unwrap()
    };
    let one = run(1);
    assert_eq!(run(2), one);
    assert_eq!(run(7), one);
}

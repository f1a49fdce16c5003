//! Table 3: how fast does decode read weights? 8-bit, 4-bit and float32 products with one activation row, beside the card's copy.
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_gemv
//! ```
//!
//! A weight smaller than the second-level cache is there in as many copies as exceed it, taken in turn.

use benches::card::{self, BEYOND_CACHE, Outcome, REPETITIONS};
use benches::kernels::{Q4, gemv_q4, launch_empty};
use fermi_blas::{Blas, Cuda, Driver, Matrix, Q8, Q8_GROUP, Weight, WeightView, quantize, synthetic};

const SIZES: [(&str, usize, usize); 6] = [
    ("tied head", 248_094, 1024),
    ("in_proj_qkv", 6144, 1024),
    ("mlp gate", 3584, 1024),
    ("mlp down", 1024, 3584),
    ("out_proj", 1024, 2048),
    ("k_proj", 512, 1024),
];

/// The card's bandwidths in bytes a second.
struct Ceilings {
    copy: f64,
}

/// Copies of a weight that together exceed the cache, and products between two events.
fn copies(bytes: usize) -> (usize, usize) {
    let copies = BEYOND_CACHE.div_ceil(bytes).min(512);
    (copies, copies.max(8))
}

fn print(size: &str, kind: &str, bytes: usize, time: f64, ceilings: &Ceilings) {
    let rate = bytes as f64 / time;
    card::row(&[
        size.to_owned(),
        kind.to_owned(),
        format!("{:.2}", time * 1e6),
        format!("{:.0}", rate / 1e9),
        format!("{:.1}%", 100.0 * rate / ceilings.copy),
    ]);
}

/// Two columns a byte.
fn pack(codes: &[i8]) -> Vec<i8> {
    let half = |code: i8| (i32::from(code) * 7 / 127 + 8) as u8;
    codes.chunks_exact(2).map(|pair| (half(pair[0]) | half(pair[1]) << 4) as i8).collect()
}

/// The values that packed codes stand for.
fn unpack(codes: &[i8], scales: &[f32], columns: usize) -> Vec<f32> {
    let halves = codes.iter().flat_map(|byte| [*byte as u8 & 15, *byte as u8 >> 4]);
    let groups = columns.div_ceil(Q8_GROUP);
    let scale = |index: usize| scales[index / columns * groups + index % columns / Q8_GROUP];
    halves.enumerate().map(|(index, half)| (f32::from(half) - 8.0) * scale(index)).collect()
}

fn check_q4(device: &Cuda, weight: &Q4<Driver>, x: &Matrix<Cuda>, y: &Matrix<Cuda>) -> Outcome {
    let (rows, columns) = (weight.codes.rows(), x.columns());
    let (codes, scales) = (weight.codes.to_vec(device)?, weight.scales.to_vec(device)?);
    let values = Matrix::from_slice(device, rows, columns, &unpack(&codes, &scales, columns))?;
    let mut expected = Matrix::zeros(device, 1, rows)?;
    device.gemv(WeightView::F32(values.view()), x.view(), expected.view_mut())?;
    Ok(benches::close("4 bits", &y.to_vec(device)?, &expected.to_vec(device)?, 1e-5)?)
}

fn measure(device: &Cuda, size: (&str, usize, usize), ceilings: &Ceilings) -> Outcome {
    let (name, rows, columns) = size;
    let label = format!("{name}, {rows} x {columns}");
    let groups = columns.div_ceil(Q8_GROUP);
    let values = synthetic::weight("w", &[rows, columns], 0);
    let (codes, scales) = quantize(&values, columns);
    let x = Matrix::from_slice(device, 1, columns, &synthetic::weight("x", &[1, columns], 0))?;
    let mut y = Matrix::zeros(device, 1, rows)?;

    let bytes = codes.len() + 4 * scales.len();
    let (count, calls) = copies(bytes);
    let eight = |_| {
        let codes = Matrix::from_slice(device, rows, columns, &codes)?;
        Ok(Weight::Q8(Q8 { codes, scales: Matrix::from_slice(device, rows, groups, &scales)? }))
    };
    let weights = (0..count).map(eight).collect::<fermi_blas::Result<Vec<Weight<Cuda>>>>()?;
    let time = card::seconds(device, REPETITIONS, calls, |call| {
        device.gemv(weights[call % count].view(), x.view(), y.view_mut())
    })?;
    print(&label, "8 bits", bytes, time, ceilings);
    drop(weights);

    let packed = pack(&codes);
    let bytes = packed.len() + 4 * scales.len();
    let (count, calls) = copies(bytes);
    let four = |_| {
        let codes = Matrix::from_slice(device, rows, columns / 2, &packed)?;
        Ok(Q4 { codes, scales: Matrix::from_slice(device, rows, groups, &scales)? })
    };
    let weights = (0..count).map(four).collect::<fermi_blas::Result<Vec<Q4<Driver>>>>()?;
    let time = card::seconds(device, REPETITIONS, calls, |call| {
        gemv_q4(device, &weights[call % count], x.view(), y.view_mut())
    })?;
    check_q4(device, &weights[0], &x, &y)?;
    print(&label, "4 bits", bytes, time, ceilings);
    drop(weights);

    let bytes = 4 * values.len();
    let (count, calls) = copies(bytes);
    let full = |_| Matrix::from_slice(device, rows, columns, &values);
    let weights = (0..count).map(full).collect::<fermi_blas::Result<Vec<Matrix<Cuda>>>>()?;
    let time = card::seconds(device, REPETITIONS, calls, |call| {
        device.gemv(WeightView::F32(weights[call % count].view()), x.view(), y.view_mut())
    })?;
    print(&label, "float32", bytes, time, ceilings);
    Ok(())
}

fn main() -> Outcome {
    let device = card::open("Products of decode")?;
    let ceilings = Ceilings { copy: card::copy_bandwidth(&device)? };
    card::line(format_args!(
        "\nCopy: {:.0} GB/s, reading and writing counted; a kernel that only reads: {:.0} GB/s.",
        ceilings.copy / 1e9,
        card::read_bandwidth(&device)? / 1e9
    ));
    let buffer = Matrix::zeros(&device, 1, 1)?;
    let empty = card::seconds(&device, REPETITIONS, 1_000, |_| launch_empty(&device, &buffer))?;
    let start = std::time::Instant::now();
    (0..1_000).try_for_each(|_| launch_empty(&device, &buffer))?;
    let host = start.elapsed().as_secs_f64() / 1e3;
    card::line(format_args!(
        "An empty kernel: {:.2} us from launch to launch, {:.2} us of them on the host.",
        1e6 * empty,
        1e6 * host
    ));
    card::head(&["weight", "kept as", "us", "GB/s", "of copy"]);
    SIZES.into_iter().try_for_each(|size| measure(&device, size, &ceilings))
}

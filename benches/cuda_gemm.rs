//! Table 1: what does a projection of prefill cost by hand, by cuBLAS, and dequantized first? GFLOP/s on the model's own shapes.
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_gemm
//! ```

use benches::card::{self, Outcome, REPETITIONS};
use benches::kernels::gemm_tiled;
use fermi_blas::{Blas, Cuda, Gemm, Matrix, Q8, Q8_GROUP, Weight, quantize, synthetic};

/// Products between two events.
const CALLS: usize = 10;

/// A projection: its name, outputs, inputs, and how many a layer has.
type Projection = (&'static str, usize, usize, usize);

const MLP: [Projection; 2] = [("mlp gate, up", 3584, 1024, 2), ("mlp down", 1024, 3584, 1)];
const DELTA_NET: [Projection; 3] =
    [("in_proj_qkv", 6144, 1024, 1), ("in_proj_z", 2048, 1024, 1), ("out_proj", 1024, 2048, 1)];
const ATTENTION: [Projection; 3] =
    [("q_proj", 4096, 1024, 1), ("k_proj, v_proj", 512, 1024, 2), ("o_proj", 1024, 2048, 1)];

/// Seconds of the three ways.
#[derive(Clone, Copy, Default)]
struct Times {
    tiled: f64,
    raw: f64,
    dequantized: f64,
}

fn measure(device: &Cuda, tokens: usize, rows: usize, columns: usize) -> Outcome<Times> {
    let values = synthetic::weight("w", &[rows, columns], 0);
    let (codes, scales) = quantize(&values, columns);
    let weight = Weight::Q8(Q8 {
        codes: Matrix::from_slice(device, rows, columns, &codes)?,
        scales: Matrix::from_slice(device, rows, columns.div_ceil(Q8_GROUP), &scales)?,
    });
    let mut values = Matrix::zeros(device, rows, columns)?;
    let input = synthetic::weight("x", &[tokens, columns], 0);
    let x = Matrix::from_slice(device, tokens, columns, &input)?;
    let (mut y, mut by_hand) = (Matrix::zeros(device, tokens, rows)?, Matrix::zeros(device, tokens, rows)?);
    device.dequantize(weight.view(), values.view_mut())?;
    let tiled = card::seconds(device, REPETITIONS, CALLS, |_| {
        gemm_tiled(device, x.view(), values.view(), by_hand.view_mut())
    })?;
    let raw = card::seconds(device, REPETITIONS, CALLS, |_| {
        device.gemm(Gemm::new(x.view(), values.view().t(), y.view_mut())?)
    })?;
    let what = format!("tiled {rows} x {columns}");
    benches::close(&what, &by_hand.to_vec(device)?, &y.to_vec(device)?, 1e-4)?;
    let dequantized = card::seconds(device, REPETITIONS, CALLS, |_| {
        device.dequantize(weight.view(), values.view_mut())?;
        device.gemm(Gemm::new(x.view(), values.view().t(), y.view_mut())?)
    })?;
    Ok(Times { tiled, raw, dequantized })
}

fn print(name: &str, size: &str, flop: f64, times: Times, peak: f64) {
    let rate = |seconds: f64| {
        let rate = flop / seconds;
        format!("{:.0} ({:.1}%)", rate / 1e9, 100.0 * rate / peak)
    };
    let share = format!("{:.1}%", 100.0 * times.raw / times.dequantized);
    card::row(&[
        name.to_owned(),
        size.to_owned(),
        rate(times.tiled),
        rate(times.raw),
        rate(times.dequantized),
        share,
    ]);
}

fn table(device: &Cuda, tokens: usize) -> Outcome {
    let peak = card::peak_flops(device.info());
    card::line(format_args!(
        "\n## {tokens} tokens\n\nGFLOP/s, and share of the peak of {:.1} TFLOP/s",
        peak / 1e12
    ));
    card::head(&["projection", "out x in", "tiled by hand", "sgemm", "dequantize + sgemm", "of sgemm"]);
    let mut sums = Vec::new();
    for (layer, own) in [("a delta-net layer", DELTA_NET), ("an attention layer", ATTENTION)] {
        let (mut sum, mut flops) = (Times::default(), 0.0);
        for (name, rows, columns, count) in own.into_iter().chain(MLP) {
            let times = measure(device, tokens, rows, columns)?;
            let flop = 2.0 * (tokens * rows * columns) as f64;
            print(name, &format!("{rows} x {columns}"), flop, times, peak);
            let count = count as f64;
            sum.tiled += count * times.tiled;
            sum.raw += count * times.raw;
            sum.dequantized += count * times.dequantized;
            flops += count * flop;
        }
        sums.push((layer, flops, sum));
    }
    for (layer, flops, sum) in sums {
        print(&format!("**{layer}**"), "", flops, sum, peak);
    }
    Ok(())
}

fn main() -> Outcome {
    let device = card::open("Projections of prefill")?;
    [2_048, 512].into_iter().try_for_each(|tokens| table(&device, tokens))
}

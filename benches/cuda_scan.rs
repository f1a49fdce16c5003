//! Table 2: is the chunked scan faster than the sequential one, by how much, and where does its time go? 16 heads of 128.
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_scan
//! ```

use benches::card::{self, Outcome, REPETITIONS};
use benches::scan_layer::ScanLayer;
use fermi_blas::Cuda;

const CHUNKS: [usize; 3] = [32, 64, 128];

/// The chunk whose time is shown by component.
const SHOWN: usize = 64;

fn measure(device: &Cuda, tokens: usize) -> Outcome {
    let mut layer = ScanLayer::new(device, tokens)?;
    let sequential = card::seconds(device, REPETITIONS, 1, |_| layer.run(None))?;
    card::line(format_args!("\n## {tokens} tokens"));
    card::head(&["scan", "ms", "of the sequential speed"]);
    card::row(&["sequential".to_owned(), format!("{:.3}", 1e3 * sequential), "1.00".to_owned()]);
    for chunk_len in CHUNKS {
        let mut scratch = layer.scratch(chunk_len)?;
        let time = card::seconds(device, REPETITIONS, 1, |_| layer.run(Some((chunk_len, &mut scratch))))?;
        let name = format!("chunked by {chunk_len}");
        card::row(&[name, format!("{:.3}", 1e3 * time), format!("{:.2}", sequential / time)]);
    }
    let mut scratch = layer.scratch(SHOWN)?;
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
    let mut step = ScanLayer::new(&device, 1)?;
    let time = card::seconds(&device, REPETITIONS, 20, |_| step.run(None))?;
    card::line(format_args!("One token of decode: {:.2} us.", 1e6 * time));
    Ok(())
}

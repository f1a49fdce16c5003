//! How many tokens a second does the full-size backbone write, in 8 bits, after 512 and 8,000 tokens?
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_decode -- FOLDER
//! ```

use std::time::Instant;

use benches::card::{self, Outcome};
use fermi_blas::{Backend, Checkpoint, Cuda, Precision, synthetic};
use qwen3_hybrid::{Backbone, Config, Input, Options, Sequence};

/// Tokens that are written after each prompt.
const STEPS: usize = 100;

/// Tokens of a profile.
const PROFILED: usize = 20;

fn step(model: &mut Backbone<Cuda>, sequence: &mut Sequence<Cuda>) -> qwen3_hybrid::Result<()> {
    let id = model.greedy()?;
    model.step(sequence, id)
}

fn measure(device: &Cuda, model: &mut Backbone<Cuda>, prompt: usize) -> Outcome {
    let ids = synthetic::token_ids("prompt", prompt, 0, model.config().vocab_size as u32);
    let mut sequence = model.sequence()?;
    model.prefill(&mut sequence, Input::Ids(&ids))?;
    let median = card::seconds(device, STEPS, 1, |_| step(model, &mut sequence))?;
    let start = Instant::now();
    (0..STEPS).try_for_each(|_| step(model, &mut sequence))?;
    device.synchronize()?;
    let whole = start.elapsed().as_secs_f64() / STEPS as f64;
    card::row(&[
        format!("{prompt}"),
        format!("{:.3}", 1e3 * median),
        format!("{:.1}", 1.0 / median),
        format!("{:.1}", 1.0 / whole),
    ]);
    Ok(())
}

fn profile(device: &Cuda, model: &mut Backbone<Cuda>, prompt: usize) -> Outcome {
    let ids = synthetic::token_ids("prompt", prompt, 0, model.config().vocab_size as u32);
    let mut sequence = model.sequence()?;
    model.prefill(&mut sequence, Input::Ids(&ids))?;
    step(model, &mut sequence)?;
    device.set_profiling(true);
    (0..PROFILED).try_for_each(|_| step(model, &mut sequence))?;
    device.set_profiling(false);
    card::line(format_args!(
        "\n{PROFILED} tokens after {prompt} by component (what the card waits for the host between two events is counted in):\n\n{}",
        device.profile()?
    ));
    Ok(())
}

fn main() -> Outcome {
    let device = card::open("Decode")?;
    let folder = card::model_folder()?;
    let config = Config::open(&folder)?;
    let options = Options::default().precision(Precision::Q8).context_length(16_384);
    let mut model = Backbone::load(&device, &Checkpoint::open(folder)?, &config, options)?;
    card::line(format_args!(
        "\n8 bits, room for 16,384 tokens; {:.3} GB of buffers.",
        device.memory().in_use as f64 / 1e9
    ));
    card::head(&["tokens before", "ms a token, median", "tok/s", "tok/s by the host's clock"]);
    for prompt in [512, 8_000] {
        measure(&device, &mut model, prompt)?;
    }
    [512, 8_000].into_iter().try_for_each(|prompt| profile(&device, &mut model, prompt))
}

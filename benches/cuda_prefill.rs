//! Table 4: how many tokens a second does the full-size backbone read, and what would the attention before the rewrite leave of it?
//!
//! ```sh
//! cargo bench -p benches --features cuda --bench cuda_prefill -- FOLDER
//! ```
//!
//! The naive attention is no part of the model. It is timed on the same sizes, pass by pass and layer by layer, and its total stands in for
//! the time that the profile books under attention.

use std::time::Duration;

use benches::card::{self, Outcome};
use benches::kernels::{NaiveAttention, naive_attention, naive_scores_len};
use fermi_blas::{Backend, Checkpoint, Cuda, Matrix, Precision, Profile, synthetic};
use qwen3_hybrid::{Backbone, Config, Input, LayerType, Options};

const LENGTHS: [usize; 4] = [2_048, 5_000, 8_000, 10_000];

/// Tokens a pass, first what is the default.
const PASSES: [usize; 3] = [512, 1_024, 2_048];

const REPETITIONS: usize = 5;

/// What the model books its softmax attention under.
const COMPONENTS: [&str; 3] = ["attention scores", "attention softmax", "attention values"];

fn load(device: &Cuda, folder: &std::path::Path, prefill_chunk: usize) -> Outcome<Backbone<Cuda>> {
    let config = Config::open(folder)?;
    let options = Options::default().precision(Precision::Q8).prefill_chunk(prefill_chunk);
    Ok(Backbone::load(device, &Checkpoint::open(folder)?, &config, options)?)
}

/// Seconds of a prefill of the first `tokens` ids, and the profile of one.
fn prefill(device: &Cuda, model: &mut Backbone<Cuda>, tokens: usize) -> Outcome<(f64, Profile)> {
    let ids = synthetic::token_ids("prompt", tokens, 0, model.config().vocab_size as u32);
    let mut sequence = model.sequence()?;
    let mut times = Vec::with_capacity(REPETITIONS);
    // The first pass loads kernels; the last books its components.
    for repetition in 0..REPETITIONS + 2 {
        sequence.clear(device)?;
        device.synchronize()?;
        device.set_profiling(repetition > REPETITIONS);
        let time = device.time(|| model.prefill(&mut sequence, Input::Ids(&ids)))?;
        if (1..=REPETITIONS).contains(&repetition) {
            times.push(time.as_secs_f64());
        }
    }
    device.set_profiling(false);
    times.sort_by(f64::total_cmp);
    Ok((times[REPETITIONS / 2], device.profile()?))
}

/// Seconds that the naive attention takes over a prefill in passes of `chunk` tokens.
fn naive(device: &Cuda, config: &Config, tokens: usize, chunk: usize) -> Outcome<f64> {
    let (heads, groups) = (config.num_attention_heads, config.num_key_value_heads);
    let values = |name, rows: usize, columns: usize| {
        Matrix::from_slice(device, rows, columns, &synthetic::weight(name, &[rows, columns], 0))
    };
    let q = values("q", chunk, 2 * config.query_dim())?;
    let keys = values("k", tokens, config.key_value_dim())?;
    let v = values("v", tokens, config.key_value_dim())?;
    let mut out = Matrix::zeros(device, chunk, config.query_dim())?;
    let mut scores = Matrix::zeros(device, 1, naive_scores_len(chunk, tokens, heads))?;
    let mut whole = 0.0;
    for history in (0..tokens).step_by(chunk) {
        let rows = chunk.min(tokens - history);
        whole += card::seconds(device, 1, 1, |_| {
            naive_attention(
                device,
                NaiveAttention {
                    q: q.row_range(0..rows)?,
                    keys: keys.view(),
                    values: v.view(),
                    out: out.row_range_mut(0..rows)?,
                    scores: scores.view_mut(),
                    history,
                    heads,
                    groups,
                },
            )
        })?;
    }
    Ok(whole * config.count(LayerType::FullAttention) as f64)
}

fn attention(profile: &Profile) -> Duration {
    profile.rows.iter().filter(|row| COMPONENTS.contains(&row.0)).map(|row| row.2).sum()
}

fn table(device: &Cuda, model: &mut Backbone<Cuda>) -> Outcome<Profile> {
    card::line("\n## By length, passes of 512 tokens");
    card::head(&[
        "tokens",
        "ms",
        "tok/s",
        "of the first",
        "attention, ms",
        "naive attention, ms",
        "tok/s with it",
        "times",
    ]);
    let config = model.config().clone();
    let (mut first, mut last) = (None, Profile::default());
    for tokens in LENGTHS {
        let (time, profile) = prefill(device, model, tokens)?;
        let attention = attention(&profile).as_secs_f64();
        let naive = naive(device, &config, tokens, PASSES[0])?;
        let (rate, with_naive) = (tokens as f64 / time, time - attention + naive);
        let first = *first.get_or_insert(rate);
        card::row(&[
            format!("{tokens}"),
            format!("{:.1}", 1e3 * time),
            format!("{rate:.0}"),
            format!("{:.1}%", 100.0 * rate / first),
            format!("{:.2}", 1e3 * attention),
            format!("{:.1}", 1e3 * naive),
            format!("{:.0}", tokens as f64 / with_naive),
            format!("{:.1}", with_naive / time),
        ]);
        last = profile;
    }
    card::line(
        "\nThe naive attention is timed alone on the same sizes and put in the place of ours: total - attention + naive.",
    );
    Ok(last)
}

fn main() -> Outcome {
    let device = card::open("Prefill")?;
    let folder = card::model_folder()?;
    let mut model = load(&device, &folder, PASSES[0])?;
    let held = device.memory().in_use as f64 / 1e9;
    card::line(format_args!("\n8 bits, room for 16,384 tokens; {held:.3} GB of buffers."));
    let profile = table(&device, &mut model)?;
    card::line(format_args!("\n10,000 tokens by component:\n\n{profile}"));
    drop(model);

    card::line("## By tokens a pass");
    card::head(&["a pass", "tokens", "ms", "tok/s", "buffers, GB"]);
    for chunk in PASSES {
        let mut model = load(&device, &folder, chunk)?;
        let held = device.memory().in_use as f64 / 1e9;
        for tokens in [LENGTHS[0], LENGTHS[3]] {
            let (time, _) = prefill(&device, &mut model, tokens)?;
            card::row(&[
                format!("{chunk}"),
                format!("{tokens}"),
                format!("{:.1}", 1e3 * time),
                format!("{:.0}", tokens as f64 / time),
                format!("{held:.3}"),
            ]);
        }
    }
    Ok(())
}

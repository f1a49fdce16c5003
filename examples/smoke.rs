//! Eight kinds of questions with known answers: plain text, colour and shape, text in a picture, two pictures, slices, a
//! follow-up, text after a picture, Spanish.
//!
//! Ends with the exit status 1 if an answer is wrong. With `--cases` it asks the questions of a file instead and prints one JSON
//! object a case.
//!
//! ```sh
//! cargo run --release -p examples --example smoke
//! cargo run --release -p examples --example smoke -- --precision f32
//! cargo run --release -p examples --example smoke -- --cases cases.json
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use examples::{
    Case, DeviceOptions, ModelOptions, Outcome, Program, Turn, bundled, print, print_json, print_table,
};
use serde_json::json;
use vlm_pipeline::{Options, Pipeline, VlmBackend};

/// Asks questions whose answers are known.
#[derive(Parser)]
struct Args {
    /// A list of other cases, {item, turns: [{images, question, expected}]}; prints one JSON object a case
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Room for prompt and answer, in tokens
    #[arg(long, value_name = "N", default_value_t = 4096)]
    context_length: usize,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    device: DeviceOptions,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| args.device.run(args))
}

impl Program for Args {
    fn run<B: VlmBackend>(self, device: &B) -> Result<()> {
        let file = self.cases.clone().map_or_else(|| bundled("smoke/battery.json"), Ok)?;
        let cases = Case::read(&file)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let options = Options { context_length: self.context_length, ..Options::default() };
        let mut vlm = self.model.load(device, options)?;
        if self.cases.is_some() {
            answer_batch(&mut vlm, &cases, folder)
        } else {
            run_battery(&mut vlm, &cases, folder)
        }
    }
}

fn answer_batch<B: VlmBackend>(vlm: &mut Pipeline<B>, cases: &[Case], folder: &Path) -> Result<()> {
    for case in cases {
        let outcomes = case.run(vlm, folder)?;
        let pass = case.turns.iter().zip(&outcomes).all(|(turn, outcome)| turn.accepts(outcome));
        let answers: Vec<&str> = outcomes.iter().map(|outcome| outcome.answer.as_str()).collect();
        let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
        print_json(&json!({"item": case.item, "answers": answers, "pass": pass, "seconds": seconds}))?;
    }
    Ok(())
}

fn run_battery<B: VlmBackend>(vlm: &mut Pipeline<B>, cases: &[Case], folder: &Path) -> Result<()> {
    let mut rows = vec![["item", "prompt", "expected", "answer", "pass", "seconds"].map(String::from)];
    let mut turns: Vec<(&Turn, Outcome)> = Vec::new();
    for case in cases {
        for (turn, outcome) in case.turns.iter().zip(case.run(vlm, folder)?) {
            let pictures = turn.images.iter().map(|name| format!("[{name}] ")).collect::<String>();
            rows.push([
                case.item.clone(),
                pictures + &turn.question,
                turn.expected.clone().unwrap_or_default(),
                outcome.answer.clone(),
                if turn.accepts(&outcome) { "yes" } else { "NO" }.to_owned(),
                format!("{:.2}", outcome.seconds),
            ]);
            turns.push((turn, outcome));
        }
    }
    print_table(&rows)?;
    let wrong = turns.iter().filter(|(turn, outcome)| !turn.accepts(outcome)).count();
    let differing: Vec<usize> = turns.iter().map(|(turn, outcome)| turn.differing_tokens(outcome)).collect();
    print(format_args!(
        "{} of {} answers are right. From the reference in float32 differ {} of {} answers, {} of {} tokens.",
        turns.len() - wrong,
        turns.len(),
        differing.iter().filter(|&&count| count > 0).count(),
        turns.len(),
        differing.iter().sum::<usize>(),
        turns.iter().map(|(turn, _)| turn.tokens.len()).sum::<usize>()
    ))?;
    if wrong > 0 {
        bail!("{wrong} answers are wrong");
    }
    Ok(())
}

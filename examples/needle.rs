//! A code phrase at 60% of a long document, and the question what it was.
//!
//! Ends with the exit status 1 if a code comes back wrong.
//!
//! ```sh
//! cargo run --release -p examples --example needle
//! cargo run --release -p examples --example needle -- --tokens 16000 --code velvet-violet-93
//! ```

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use examples::{DeviceOptions, Haystack, ModelOptions, Program, bundled, print_table};
use vlm_pipeline::{GenerateOptions, Options, VlmBackend};

/// Longer answers than any code.
const MOST_TOKENS: usize = 64;

/// Finds a code in long documents.
#[derive(Parser)]
struct Args {
    /// The most tokens of each document with its question
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2000,5000,8000,10000")]
    tokens: Vec<usize>,
    /// What is hidden; the small checkpoint knows codes of its model card's form only [default: one for each length]
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
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
        let haystack = Haystack::read(&bundled("smoke/needle.json")?)?;
        let longest = self.tokens.iter().max().copied().unwrap_or_default();
        let options = Options {
            context_length: longest.saturating_add(MOST_TOKENS),
            keep_prefix: false,
            ..Options::default()
        };
        let mut vlm = self.model.load(device, options)?;
        let options = GenerateOptions { max_new_tokens: Some(MOST_TOKENS), ..GenerateOptions::default() };
        let mut rows =
            vec![["tokens", "hidden", "found", "pass", "prefill tok/s", "seconds"].map(String::from)];
        let mut wrong = 0;
        for &tokens in &self.tokens {
            let tier = haystack.tiers.iter().find(|tier| tier.tokens == tokens);
            let code = self.code.as_deref().or(tier.map(|tier| tier.code.as_str())).unwrap_or("falcon-4821");
            let prompt = haystack.prompt(vlm.prompt_builder()?, tokens, code)?;
            let (begun, mut session) = (Instant::now(), vlm.session());
            let mut generation = vlm.generate(&mut session, &prompt.ids, &[], &options)?;
            let ids = generation.by_ref().collect::<Result<Vec<u32>, _>>()?;
            let prefill = generation.timings().prefill.as_secs_f64();
            drop(generation);
            let seconds = begun.elapsed().as_secs_f64();
            let found = vlm.prompt_builder()?.tokenizer().decode(&ids);
            let pass = found == code;
            wrong += usize::from(!pass);
            #[allow(clippy::cast_precision_loss, reason = "a few thousand tokens")]
            let rate = prompt.ids.len() as f64 / prefill;
            rows.push([
                prompt.ids.len().to_string(),
                code.to_owned(),
                found,
                if pass { "yes" } else { "NO" }.to_owned(),
                format!("{rate:.0}"),
                format!("{seconds:.2}"),
            ]);
        }
        print_table(&rows)?;
        if wrong > 0 {
            bail!("{wrong} of {} codes are wrong", self.tokens.len());
        }
        Ok(())
    }
}

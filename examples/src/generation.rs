//! How answers are generated.

use clap::{Args, ValueEnum};
use qwen3_hybrid::Sampling;
use vlm_pipeline::{GenerateOptions, Thinking};

/// Generation, on the command line. Greedy unless a temperature is given, whatever the checkpoint recommends.
#[derive(Args, Clone, Copy, Debug)]
pub struct GenerationOptions {
    /// The most tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub max_new_tokens: usize,
    /// Room for prompt and answer, in tokens
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    pub context_length: usize,
    /// Let the model think first; its thoughts go to stderr
    #[arg(long, value_enum, default_value = "off")]
    pub thinking: Switch,
    /// Draw tokens instead of taking the likeliest
    #[arg(long, value_name = "T", allow_negative_numbers = true, default_value_t = 0.0)]
    pub temperature: f64,
    /// Draw from the so many likeliest tokens only; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub top_k: usize,
    /// Draw from the likeliest tokens that together are this likely
    #[arg(long, value_name = "P", allow_negative_numbers = true, default_value_t = 1.0)]
    pub top_p: f64,
    /// The same seed draws the same tokens
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

impl From<Switch> for Thinking {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Self::On,
            Switch::Off => Self::Off,
        }
    }
}

impl GenerationOptions {
    /// As the pipeline takes them.
    pub fn generate(&self) -> GenerateOptions {
        let Self { max_new_tokens, temperature, top_k, top_p, seed, .. } = *self;
        GenerateOptions {
            max_new_tokens: Some(max_new_tokens),
            sampling: Sampling { temperature, top_k, top_p, seed, ..Sampling::default() },
            ..GenerateOptions::default()
        }
    }
}

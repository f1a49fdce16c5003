//! Long documents with one code phrase in them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use vlm_pipeline::{Message, Prompt, PromptBuilder, RenderOptions, Request, Role};

/// What documents are made of.
#[derive(Clone, Debug, Deserialize)]
pub struct Haystack {
    filler: Vec<String>,
    question: String,
    /// Where the phrase stands: this share of the sentences comes before it.
    depth: f64,
    /// The documents that the reference was asked about.
    pub tiers: Vec<Tier>,
}

/// A document and the reference's answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Tier {
    /// The most tokens of the prompt.
    pub tokens: usize,
    /// The code.
    pub code: String,
    /// How many tokens the prompt has.
    pub prompt_tokens: usize,
    /// FNV-1a of the prompt's ids, as four little-endian bytes each.
    pub prompt_hash: String,
    /// What the reference answered, in float32.
    pub answer: Golden,
}

/// Greedy tokens of the reference, the stop token last.
#[derive(Clone, Debug, Deserialize)]
pub struct Golden {
    /// Their ids.
    pub tokens: Vec<u32>,
    /// By how much each of them led the next one.
    pub margins: Vec<f64>,
}

impl Haystack {
    /// Reads the parts of documents.
    ///
    /// # Errors
    /// When the file cannot be read or is none.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| format!("{}: no sentences", path.display()))
    }

    /// The prompt with the longest document that makes at most so many tokens.
    ///
    /// # Errors
    /// As [`PromptBuilder::build`].
    pub fn prompt(&self, builder: &PromptBuilder, tokens: usize, code: &str) -> Result<Prompt> {
        let build = |sentences| {
            let message = Message::text(Role::User, self.document(sentences, code));
            builder.build(&Request::new(vec![message]), &[], &RenderOptions::default())
        };
        // Every sentence is at least one token.
        let (mut fits, mut too_many) = (0, tokens + 1);
        let mut best = build(fits)?;
        while too_many - fits > 1 {
            let middle = fits.midpoint(too_many);
            let prompt = build(middle)?;
            if prompt.ids.len() <= tokens {
                (fits, best) = (middle, prompt);
            } else {
                too_many = middle;
            }
        }
        Ok(best)
    }

    /// Sentences taken in turn, the phrase among them, the question on a line of its own.
    fn document(&self, sentences: usize, code: &str) -> String {
        let phrase = format!("The secret code is {code}.");
        let mut parts: Vec<&str> = self.filler.iter().map(String::as_str).cycle().take(sentences).collect();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a small count"
        )]
        let at = (sentences as f64 * self.depth).round() as usize;
        parts.insert(at.min(parts.len()), &phrase);
        format!("{}\n{}", parts.join(" "), self.question)
    }
}

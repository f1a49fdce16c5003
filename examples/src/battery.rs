//! Conversations with known answers: the smoke battery, and batches that an evaluation asks for.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde::Deserialize;
use vlm_pipeline::{
    EncodedImage, GenerateOptions, Image, Message, Pipeline, RenderOptions, Request, Role, VlmBackend,
};

/// Longer answers than any that is expected.
const MOST_TOKENS: usize = 100;

/// One conversation.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// What it is an instance of.
    pub item: String,
    /// Questions in their order.
    pub turns: Vec<Turn>,
}

/// A question with the pictures shown along with it.
#[derive(Clone, Debug, Deserialize)]
pub struct Turn {
    /// Files, relative ones from the folder of the list.
    #[serde(default)]
    pub images: Vec<String>,
    /// The question.
    pub question: String,
    /// The right answer; without one, any is.
    #[serde(default)]
    pub expected: Option<String>,
    /// Greedy tokens of the reference in float32, the stop token last; empty if it was not asked.
    #[serde(default)]
    pub tokens: Vec<u32>,
    /// By how much each of them led the next one.
    #[serde(default)]
    pub margins: Vec<f64>,
}

/// What came of a turn.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer.
    pub answer: String,
    /// Its tokens, the stop token included.
    pub tokens: Vec<u32>,
    /// Seconds from the pictures' files to the last token.
    pub seconds: f64,
}

impl Turn {
    /// Whether this is the right answer.
    pub fn accepts(&self, outcome: &Outcome) -> bool {
        self.expected.as_ref().is_none_or(|expected| *expected == outcome.answer)
    }

    /// At how many places these tokens are not the reference's, a missing or additional token counted as one place.
    pub fn differing_tokens(&self, outcome: &Outcome) -> usize {
        let (longer, shorter) = if self.tokens.len() > outcome.tokens.len() {
            (&self.tokens, &outcome.tokens)
        } else {
            (&outcome.tokens, &self.tokens)
        };
        longer.iter().enumerate().filter(|(at, token)| shorter.get(*at) != Some(token)).count()
    }
}

impl Case {
    /// Reads a list of cases.
    ///
    /// # Errors
    /// When the file cannot be read or is no such list.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| format!("{}: not a list of cases", path.display()))
    }

    /// Holds the conversation, greedily; pictures are looked for in `folder`. Later questions follow the model's own answers.
    ///
    /// # Errors
    /// When a picture cannot be read, or as [`Pipeline::encode`], [`Pipeline::prompt`] and [`Pipeline::generate`].
    pub fn run<B: VlmBackend>(&self, vlm: &mut Pipeline<B>, folder: &Path) -> Result<Vec<Outcome>> {
        let options = GenerateOptions { max_new_tokens: Some(MOST_TOKENS), ..GenerateOptions::default() };
        let (mut request, mut session) = (Request::default(), vlm.session());
        let mut images: Vec<EncodedImage<B>> = Vec::new();
        let mut outcomes = Vec::new();
        for turn in &self.turns {
            let begun = Instant::now();
            for name in &turn.images {
                let image = Image::open(folder.join(name))?;
                images.push(vlm.encode(&image)?);
            }
            request.messages.push(Message::user(turn.images.len(), &turn.question));
            let prompt = vlm.prompt(&request, &images, &RenderOptions::default())?;
            let generation = vlm.generate(&mut session, &prompt.ids, &images, &options)?;
            let tokens = generation.collect::<Result<Vec<u32>, _>>()?;
            let answer = vlm.prompt_builder()?.tokenizer().decode(&tokens);
            request.messages.push(Message::text(Role::Assistant, &answer));
            outcomes.push(Outcome { answer, tokens, seconds: begun.elapsed().as_secs_f64() });
        }
        Ok(outcomes)
    }
}

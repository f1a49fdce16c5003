//! Which tokens end an answer, and why it ended.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::files::{read_json, read_json_if_there};
use crate::tokenizer::Tokenizer;
use crate::{Error, Result};

/// Why generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model chose a stop token.
    Stop,
    /// The tokens asked for, or the context, were used up.
    Length,
    /// The caller asked for an end.
    Cancelled,
}

impl FinishReason {
    /// The reason as OpenAI-style clients know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The tokens that end an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopIds(BTreeSet<u32>);

impl StopIds {
    /// The given ids.
    pub fn new(ids: impl IntoIterator<Item = u32>) -> Self {
        Self(ids.into_iter().collect())
    }

    /// The union of `generation_config.json`'s end tokens and the tokenizer's own, if there is one; where neither names one, those of
    /// `config.json`.
    ///
    /// # Errors
    /// A file that is there but is not JSON, or an end token that is no token id.
    pub fn load(dir: &Path, tokenizer: Option<&Tokenizer>) -> Result<Self> {
        let mut ids = BTreeSet::new();
        let path = dir.join("generation_config.json");
        if let Some(config) = read_json_if_there(&path)? {
            collect(&config["eos_token_id"], &path, &mut ids)?;
        }
        ids.extend(tokenizer.and_then(Tokenizer::eos_id));
        if ids.is_empty() {
            let path = dir.join("config.json");
            let config = read_json(&path)?;
            collect(&config["eos_token_id"], &path, &mut ids)?;
            collect(&config["text_config"]["eos_token_id"], &path, &mut ids)?;
        }
        Ok(Self(ids))
    }

    /// Whether this token ends the answer.
    pub fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }
}

fn collect(value: &Value, path: &Path, ids: &mut BTreeSet<u32>) -> Result<()> {
    match value {
        Value::Null => Ok(()),
        Value::Array(values) => values.iter().try_for_each(|value| collect(value, path, ids)),
        _ => {
            let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
            ids.insert(id.ok_or_else(|| Error::StopId { path: path.to_owned(), value: value.to_string() })?);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;

//! `tokenizer.json`: text to ids, where control tokens are recognised only if the chat template wrote them.

mod added;
mod vocabulary;

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokenizers::AddedVocabulary;

use crate::control::Marks;
use crate::files::{read_json_if_there, read_text_if_there};
use crate::stream::TextStream;
use crate::{Error, Result};

use added::{AddedTokens, Segment};
pub(crate) use vocabulary::{TokenText, Vocabulary};

/// The checkpoint's tokenizer.
///
/// The added tokens of `tokenizer.json` (all but those of white space) are control tokens. The inner tokenizer does not know them:
/// they are found by a scan that tells the template's from those that a user typed, and everything between is plain text.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    plain: tokenizers::Tokenizer,
    added: AddedTokens,
    vocabulary: Arc<Vocabulary>,
    config: Value,
}

impl Tokenizer {
    /// Reads `tokenizer.json` and, where there is one, `tokenizer_config.json`.
    ///
    /// # Errors
    /// A file that cannot be read, or that the tokenizer library refuses.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join("tokenizer.json");
        let Some(text) = read_text_if_there(&path)? else {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(Error::ReadFile { path, source });
        };
        let config = read_json_if_there(&dir.join("tokenizer_config.json"))?.unwrap_or(Value::Null);
        let tokenizer = tokenizers::Tokenizer::from_bytes(text);
        Self::new(tokenizer.map_err(|source| Error::Tokenizer { path, source })?, config)
    }

    fn new(mut plain: tokenizers::Tokenizer, config: Value) -> Result<Self> {
        let added = AddedTokens::new(plain.get_added_tokens_decoder());
        let vocabulary = Arc::new(Vocabulary::new(&plain, &added));
        plain.with_added_vocabulary(AddedVocabulary::new());
        plain.with_post_processor(None::<tokenizers::PostProcessorWrapper>);
        plain.with_padding(None);
        plain.with_truncation(None).map_err(|source| Error::Encode { source })?;
        Ok(Self { plain, added, vocabulary, config })
    }

    /// Ids of a text in which control tokens count: for prompts that the caller wrote or rendered himself.
    ///
    /// # Errors
    /// [`Error::Encode`] when the tokenizer library fails.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_marked(text, None)
    }

    /// Ids of a text in which nothing is a control token.
    ///
    /// # Errors
    /// [`Error::Encode`] when the tokenizer library fails.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let encoding = self.plain.encode_fast(text, false).map_err(|source| Error::Encode { source })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Ids of a rendered conversation whose user-given control tokens carry marks.
    pub(crate) fn encode_marked(&self, text: &str, marks: Option<Marks>) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for segment in self.added.split(text, marks) {
            match segment {
                Segment::Added(id) => ids.push(id),
                Segment::Plain(token) => ids.extend(self.encode_plain(token)?),
                Segment::Text(text) => match marks {
                    Some(marks) => ids.extend(self.encode_plain(&marks.without(text))?),
                    None => ids.extend(self.encode_plain(text)?),
                },
            }
        }
        Ok(ids)
    }

    /// The text of these ids; special tokens have none, the think tags do.
    ///
    /// It is what a [`TextStream`] gives piece by piece.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut stream = self.stream();
        let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        text
    }

    /// Starts a text that is read token by token.
    pub fn stream(&self) -> TextStream {
        TextStream::new(Arc::clone(&self.vocabulary))
    }

    /// The id of a token, control tokens first.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.added.id(token).or_else(|| self.plain.token_to_id(token))
    }

    /// The id of a control token that must be there.
    ///
    /// # Errors
    /// [`Error::MissingToken`] when the tokenizer lacks it.
    pub fn require(&self, token: &str) -> Result<u32> {
        self.added.id(token).ok_or_else(|| Error::MissingToken { token: token.to_owned() })
    }

    /// The tokenizer's own end token.
    pub fn eos_id(&self) -> Option<u32> {
        self.named("eos_token").and_then(|token| self.token_id(token))
    }

    /// The token that `tokenizer_config.json` gives under a name such as `image_token`.
    pub(crate) fn named(&self, name: &str) -> Option<&str> {
        let value = [&self.config[name], &self.config["extra_special_tokens"][name]];
        value.into_iter().find_map(token_text)
    }

    /// The named special tokens, which a chat template may use as variables.
    pub(crate) fn template_variables(&self) -> Map<String, Value> {
        let mut variables = Map::new();
        for name in
            ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]
        {
            if let Some(token) = token_text(&self.config[name]) {
                variables.insert(name.into(), token.into());
            }
        }
        if let Some(extra) = self.config["extra_special_tokens"].as_object() {
            let named =
                extra.iter().filter_map(|(name, value)| Some((name.clone(), token_text(value)?.into())));
            variables.extend(named);
        }
        variables
    }

    /// The chat template that `tokenizer_config.json` may hold.
    pub(crate) fn template_in_config(&self) -> Option<&str> {
        let templates = &self.config["chat_template"];
        templates.as_str().or_else(|| {
            let named = templates.as_array()?.iter().find(|entry| entry["name"] == "default")?;
            named["template"].as_str()
        })
    }

    /// The texts of all control tokens.
    pub(crate) fn control_tokens(&self) -> impl Iterator<Item = &str> {
        self.added.control_tokens()
    }
}

/// A token stands as text or as an object with `content`.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

#[cfg(test)]
mod tests;

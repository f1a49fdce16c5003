//! Control tokens that a user typed stay text.
//!
//! A chat template writes its own control tokens and the users' words into one text. Before rendering, each control token
//! inside the users' words is put between two marks, private characters that occur nowhere in the conversation; after it,
//! a token between marks is encoded as plain text. Where words of a user begin or end in the middle of a control token, a third
//! mark, the guard, keeps them from completing one together with what the template writes next to them; guards are taken
//! out again before encoding, so they change no ids.

use serde_json::Value;

use crate::tokenizer::Tokenizer;
use crate::{Error, Result};

/// Three characters that occur nowhere in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) open: char,
    pub(crate) close: char,
    guard: char,
}

impl Marks {
    /// Chooses characters that none of the texts contains.
    pub(crate) fn absent_from<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self> {
        let mut taken: Vec<char> =
            texts.into_iter().flat_map(str::chars).filter(|&c| is_private(c)).collect();
        taken.sort_unstable();
        taken.dedup();
        let candidates =
            ('\u{f0000}'..='\u{ffffd}').chain('\u{100000}'..='\u{10fffd}').chain('\u{e000}'..='\u{f8ff}');
        let mut free = candidates.filter(|c| taken.binary_search(c).is_err());
        match (free.next(), free.next(), free.next()) {
            (Some(open), Some(close), Some(guard)) => Ok(Self { open, close, guard }),
            _ => Err(Error::NoFreeMark { taken: taken.len() }),
        }
    }

    /// Whether this character parts the text around it.
    pub(crate) fn breaks(self, c: char) -> bool {
        c == self.open || c == self.close
    }

    /// The text without any mark.
    pub(crate) fn without(self, text: &str) -> String {
        text.replace([self.open, self.close, self.guard], "")
    }

    /// Marks a user's text.
    fn mark(self, text: &str, tokenizer: &Tokenizer) -> String {
        let mut marked = String::with_capacity(text.len() + 8);
        let body = text.trim_start();
        marked.push_str(&text[..text.len() - body.len()]);
        if continues_token(body, tokenizer) {
            marked.push(self.guard);
        }
        let mut rest = body;
        while let Some(first) = rest.chars().next() {
            let length = match token_at(rest, tokenizer) {
                Found::Whole(length) => {
                    marked.push(self.open);
                    marked.push_str(&rest[..length]);
                    marked.push(self.close);
                    length
                }
                Found::CutOff => {
                    marked.push(first);
                    marked.push(self.guard);
                    first.len_utf8()
                }
                Found::Nothing => {
                    marked.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        marked
    }

    /// Marks every text of a JSON value, keys too.
    pub(crate) fn mark_value(self, value: &mut Value, tokenizer: &Tokenizer) {
        match value {
            Value::String(text) => *text = self.mark(text, tokenizer),
            Value::Array(values) => values.iter_mut().for_each(|value| self.mark_value(value, tokenizer)),
            Value::Object(map) => {
                let entries = std::mem::take(map).into_iter().map(|(key, mut value)| {
                    match &mut value {
                        Value::String(word) if key == "role" || key == "type" => {
                            *word = self.mark_word(std::mem::take(word), tokenizer);
                        }
                        value => self.mark_value(value, tokenizer),
                    }
                    (self.mark_word(key, tokenizer), value)
                });
                *map = entries.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Templates look for keys, roles and types by name, so only one that holds a whole control token, which none does, is
    /// touched.
    fn mark_word(self, word: String, tokenizer: &Tokenizer) -> String {
        let holds = tokenizer.control_tokens().any(|token| word.contains(token));
        if holds { self.mark(&word, tokenizer) } else { word }
    }
}

fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

/// What begins at a place in a user's text.
enum Found {
    /// A control token of this many bytes.
    Whole(usize),
    /// The beginning of a control token, cut off by the text's end (or by the white space there, which a template may trim).
    CutOff,
    Nothing,
}

fn token_at(rest: &str, tokenizer: &Tokenizer) -> Found {
    let tail = rest.trim_end();
    let mut found = Found::Nothing;
    for token in tokenizer.control_tokens() {
        // The longest token comes first.
        if rest.starts_with(token) {
            return Found::Whole(token.len());
        }
        if !tail.is_empty() && token.starts_with(tail) {
            found = Found::CutOff;
        }
    }
    found
}

/// Whether the text's beginning, or all of it, would continue a control token begun by what stands before it.
fn continues_token(body: &str, tokenizer: &Tokenizer) -> bool {
    let whole = body.trim_end();
    !whole.is_empty()
        && tokenizer.control_tokens().any(|token| {
            let later = token.char_indices().skip(1).map(|(at, _)| &token[at..]);
            later.into_iter().any(|suffix| body.starts_with(suffix) || suffix.starts_with(whole))
        })
}

#[cfg(test)]
mod tests;

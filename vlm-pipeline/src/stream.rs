//! Text from token ids as they come: no piece ever shows half a character.

use std::sync::Arc;

use crate::tokenizer::{TokenText, Vocabulary};

/// Turns token ids into text, piece by piece.
///
/// The pieces joined are the text of all ids at once; a character whose bytes are spread over several tokens appears when
/// its last byte has come, bytes that can be no character appear as one U+FFFD, and a character still unfinished at the end
/// is left out.
#[derive(Debug, Clone)]
pub struct TextStream {
    vocabulary: Arc<Vocabulary>,
    /// Bytes of a character that is not complete yet, at most three.
    pending: Vec<u8>,
    /// Ids still needed as context where tokens have no bytes of their own.
    window: Vec<u32>,
    /// How many of `window` have been shown.
    shown: usize,
}

/// No character has more bytes, so a window whose end stays undecodable for longer is shown as it is.
const LONGEST_CHARACTER: usize = 4;

impl TextStream {
    pub(crate) fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self { vocabulary, pending: Vec::new(), window: Vec::new(), shown: 0 }
    }

    /// Adds one token and returns the text that is certain now, perhaps none.
    pub fn push(&mut self, id: u32) -> String {
        let vocabulary = Arc::clone(&self.vocabulary);
        match vocabulary.text(id) {
            TokenText::Bytes(bytes) => self.push_bytes(bytes),
            TokenText::Silent => String::new(),
            TokenText::Contextual => self.push_contextual(id),
        }
    }

    /// Ends the text: what is held back can no longer become a character, unless it is whole already.
    pub fn finish(&mut self) -> String {
        self.pending.clear();
        let text = self.unshown();
        self.window.clear();
        self.shown = 0;
        text.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
    }

    /// Adds raw bytes: what [`push`](Self::push) does where a token's bytes are known.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut start = 0;
        loop {
            let rest = &self.pending[start..];
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    start = self.pending.len();
                    break;
                }
                Err(error) => {
                    let (valid, invalid) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    start += valid.len();
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            start += length.min(invalid.len());
                        }
                        None => break,
                    }
                }
            }
        }
        self.pending.drain(..start);
        text
    }

    fn push_contextual(&mut self, id: u32) -> String {
        self.window.push(id);
        let text = self.unshown();
        let held = self.window.len() - self.shown;
        if text.ends_with(char::REPLACEMENT_CHARACTER) && held < LONGEST_CHARACTER {
            return String::new();
        }
        self.window.drain(..self.shown);
        self.shown = self.window.len();
        text
    }

    /// The text of the window's unshown ids, read after the shown ones, since a decoder may treat a first token in its own
    /// way.
    fn unshown(&self) -> String {
        let whole = self.vocabulary.decode_in_context(&self.window);
        let prefix = self.vocabulary.decode_in_context(&self.window[..self.shown]);
        whole.strip_prefix(prefix.as_str()).unwrap_or(&whole).to_owned()
    }
}

#[cfg(test)]
mod tests;

//! The bytes or the text behind each token id.

use serde_json::Value;
use tokenizers::{Decoder, DecoderWrapper, Model, ModelWrapper};

use super::added::AddedTokens;

/// What a token adds to the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenText<'v> {
    /// These bytes, whatever stands around them.
    Bytes(&'v [u8]),
    /// Nothing: a special token, or no token at all.
    Silent,
    /// What the decoder makes of it among its neighbours.
    Contextual,
}

/// From token ids to bytes or text.
#[derive(Debug)]
pub(crate) enum Vocabulary {
    /// Byte-level tokens: the bytes of token `i` are `bytes[ends[i - 1]..ends[i]]`.
    ByteLevel { bytes: Vec<u8>, ends: Vec<u32> },
    /// Any other decoder, asked with a token's neighbours.
    Decoder { model: Box<ModelWrapper>, decoder: Option<Box<DecoderWrapper>>, added: AddedTokens },
}

impl Vocabulary {
    pub(crate) fn new(tokenizer: &tokenizers::Tokenizer, added: &AddedTokens) -> Self {
        if !tokenizer.get_decoder().is_some_and(is_byte_level) {
            return Self::Decoder {
                model: Box::new(tokenizer.get_model().clone()),
                decoder: tokenizer.get_decoder().cloned().map(Box::new),
                added: added.clone(),
            };
        }
        let mut texts: Vec<Vec<u8>> = Vec::new();
        let mut set = |id: u32, text: Vec<u8>| {
            let id = id as usize;
            if texts.len() <= id {
                texts.resize(id + 1, Vec::new());
            }
            texts[id] = text;
        };
        for (token, id) in tokenizer.get_model().get_vocab() {
            set(id, byte_level_bytes(&token));
        }
        for (id, token) in added.iter() {
            set(id, if is_silent(token) { Vec::new() } else { token.content.clone().into_bytes() });
        }
        let mut bytes = Vec::new();
        let ends = texts.iter().map(|text| {
            bytes.extend_from_slice(text);
            u32::try_from(bytes.len()).unwrap_or(u32::MAX)
        });
        let ends = ends.collect();
        Self::ByteLevel { bytes, ends }
    }

    pub(crate) fn text(&self, id: u32) -> TokenText<'_> {
        match self {
            Self::ByteLevel { bytes, ends } => {
                let id = id as usize;
                let start = id.checked_sub(1).map_or(0, |before| ends.get(before).copied().unwrap_or(0));
                match ends.get(id) {
                    Some(&end) if end > start => TokenText::Bytes(&bytes[start as usize..end as usize]),
                    _ => TokenText::Silent,
                }
            }
            Self::Decoder { model, added, .. } => match added.token(id) {
                Some(token) if is_silent(token) => TokenText::Silent,
                Some(token) => TokenText::Bytes(token.content.as_bytes()),
                None if model.id_to_token(id).is_none() => TokenText::Silent,
                None => TokenText::Contextual,
            },
        }
    }

    /// The text of neighbouring tokens where a token alone has none.
    pub(crate) fn decode_in_context(&self, ids: &[u32]) -> String {
        let Self::Decoder { model, decoder, .. } = self else { return String::new() };
        let tokens: Vec<String> = ids.iter().filter_map(|&id| model.id_to_token(id)).collect();
        match decoder {
            // A decoder that fails has no text for these tokens.
            Some(decoder) => decoder.decode(tokens).unwrap_or_default(),
            None => tokens.join(" "),
        }
    }
}

/// Special tokens have no text; the think tags are kept whatever they are marked as, since the splitter needs them.
fn is_silent(token: &tokenizers::AddedToken) -> bool {
    use crate::reasoning::{THINK_CLOSE, THINK_OPEN};
    token.special && token.content != THINK_OPEN && token.content != THINK_CLOSE
}

/// Whether the decoder maps each token to bytes of its own.
fn is_byte_level(decoder: &DecoderWrapper) -> bool {
    fn all_byte_level(value: &Value) -> bool {
        match value["type"].as_str() {
            Some("ByteLevel") => true,
            Some("Sequence") => value["decoders"]
                .as_array()
                .is_some_and(|all| all.len() == 1 && all.iter().all(all_byte_level)),
            _ => false,
        }
    }
    serde_json::to_value(decoder).is_ok_and(|value| all_byte_level(&value))
}

/// The bytes that a byte-level token spells; a token with a letter outside that alphabet stands for itself.
fn byte_level_bytes(token: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
}

/// Byte-level tokens write printable Latin-1 bytes as themselves and the 68 others as U+0100 onwards, in ascending order.
fn byte_of(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    let is_printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    match u8::try_from(code) {
        Ok(byte) => is_printable(byte).then_some(byte),
        Err(_) => {
            let rank = usize::try_from(code.checked_sub(0x100)?).ok()?;
            (0..=u8::MAX).filter(|&byte| !is_printable(byte)).nth(rank)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_letter() {
        let letters: Vec<char> =
            (0..0x200).filter_map(char::from_u32).filter(|&c| byte_of(c).is_some()).collect();
        let mut bytes: Vec<u8> = letters.iter().filter_map(|&c| byte_of(c)).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=u8::MAX).collect::<Vec<_>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('Ń'), Some(0xad));
        assert_eq!(byte_of('ń'), None);
    }
}

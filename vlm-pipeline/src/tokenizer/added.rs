//! The added tokens of `tokenizer.json`, and where they stand in a text.

use std::collections::HashMap;

use tokenizers::AddedToken;

use crate::control::Marks;

/// A stretch of text, or one added token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'t> {
    /// Text between added tokens.
    Text(&'t str),
    /// A control token that a user typed.
    Plain(&'t str),
    /// An added token's id.
    Added(u32),
}

/// An added token found in a text.
struct Match {
    id: u32,
    /// Where it begins and ends with the white space that it takes along.
    from: usize,
    to: usize,
    /// Where the token itself ends: the library looks for the next one from here, even in white space that is taken.
    end: usize,
}

/// All added tokens, the longest first.
#[derive(Debug, Clone)]
pub(crate) struct AddedTokens {
    tokens: Vec<(u32, AddedToken)>,
    ids: HashMap<String, u32>,
}

impl AddedTokens {
    pub(crate) fn new(tokens: impl IntoIterator<Item = (u32, AddedToken)>) -> Self {
        let mut tokens: Vec<_> = tokens.into_iter().filter(|(_, token)| !token.content.is_empty()).collect();
        tokens.sort_by_key(|(id, token)| (std::cmp::Reverse(token.content.len()), *id));
        let ids = tokens.iter().map(|(id, token)| (token.content.clone(), *id)).collect();
        Self { tokens, ids }
    }

    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    pub(crate) fn token(&self, id: u32) -> Option<&AddedToken> {
        self.tokens.iter().find(|(of, _)| *of == id).map(|(_, token)| token)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &AddedToken)> {
        self.tokens.iter().map(|(id, token)| (*id, token))
    }

    /// Tokens of white space are ordinary text that a template cannot help containing; all others control.
    pub(crate) fn control_tokens(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(|(_, token)| token.content.as_str()).filter(|text| !text.trim().is_empty())
    }

    /// Cuts a text at its added tokens as the tokenizer library does: first those matched in the text as it is, then, in what
    /// lies between, those matched in normalised text. A token between marks is text of its own.
    pub(crate) fn split<'t>(&self, text: &'t str, marks: Option<Marks>) -> Vec<Segment<'t>> {
        let mut segments = Vec::new();
        self.cut(text, marks, false, &mut segments);
        let mut all = Vec::with_capacity(segments.len());
        for segment in segments {
            match segment {
                Segment::Text(text) => self.cut(text, marks, true, &mut all),
                _ => all.push(segment),
            }
        }
        all
    }

    fn cut<'t>(&self, text: &'t str, marks: Option<Marks>, normalized: bool, out: &mut Vec<Segment<'t>>) {
        let mut start = 0;
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let (from, to, next, segment) = if marks.is_some_and(|marks| marks.breaks(first)) {
                let token = marks.and_then(|marks| self.marked_token(&text[at..], marks));
                let length = first.len_utf8();
                // A lone mark, left over where the template cut a token in two, still parts what stands around it.
                let end = at + token.map_or(length, |token| 2 * length + token.len());
                (at, end, end, token.map(Segment::Plain))
            } else if let Some(found) = self.match_at(text, start, at, normalized) {
                (found.from, found.to, found.end, Some(Segment::Added(found.id)))
            } else {
                at += first.len_utf8();
                continue;
            };
            if start < from {
                out.push(Segment::Text(&text[start..from]));
            }
            out.extend(segment);
            at = next;
            start = to;
        }
        if start < text.len() {
            out.push(Segment::Text(&text[start..]));
        }
    }

    /// The control token between an opening mark, at the text's start, and the closing one.
    fn marked_token<'t>(&self, text: &'t str, marks: Marks) -> Option<&'t str> {
        let body = text.strip_prefix(marks.open)?;
        let token = &body[..body.find(marks.close)?];
        self.ids.contains_key(token).then_some(token)
    }

    /// The longest token at a position; white space before `earliest` belongs to the one before it.
    fn match_at(&self, text: &str, earliest: usize, at: usize, normalized: bool) -> Option<Match> {
        let rest = &text[at..];
        let found = self.tokens.iter().find(|(_, token)| {
            token.normalized == normalized && rest.as_bytes().starts_with(token.content.as_bytes())
        });
        let (id, token) = found?;
        let end = at + token.content.len();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        if token.single_word
            && (text[..at].chars().next_back().is_some_and(is_word)
                || text[end..].chars().next().is_some_and(is_word))
        {
            return None;
        }
        let from = if token.lstrip { text[..at].trim_end().len().max(earliest) } else { at };
        let to = if token.rstrip { text.len() - text[end..].trim_start().len() } else { end };
        Some(Match { id: *id, from, to, end })
    }
}

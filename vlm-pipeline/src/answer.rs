//! An answer as text, piece by piece.

use fermi_blas::Cpu;

use crate::Result;
use crate::generate::{Generation, Timings};
use crate::message::{Content, Message, Role};
use crate::pipeline::VlmBackend;
use crate::reasoning::{ReasoningSplitter, ReasoningStart, Split};
use crate::stop::FinishReason;
use crate::stream::TextStream;

/// An answer that is being generated.
///
/// As an iterator it gives the pieces of the answer proper; [`Answer::next_split`] gives the thoughts too. However it ends, read
/// to the end or dropped in the middle, what was said so far becomes part of the conversation that it belongs to.
#[derive(Debug)]
pub struct Answer<'a, B: VlmBackend = Cpu> {
    generation: Generation<'a, B>,
    text: TextStream,
    splitter: ReasoningSplitter,
    said: Split,
    ended: bool,
    record: Option<&'a mut Vec<Message>>,
}

impl<'a, B: VlmBackend> Answer<'a, B> {
    pub(crate) fn new(generation: Generation<'a, B>, text: TextStream, start: ReasoningStart) -> Self {
        let splitter = ReasoningSplitter::new(start);
        Self { generation, text, splitter, said: Split::default(), ended: false, record: None }
    }

    /// Has the answer added to these messages when it ends.
    pub(crate) fn recorded_in(mut self, messages: &'a mut Vec<Message>) -> Self {
        self.record = Some(messages);
        self
    }

    /// The text of the next token by kind, perhaps empty; `None` after the end.
    pub fn next_split(&mut self) -> Option<Result<Split>> {
        if self.ended {
            return None;
        }
        let split = match self.generation.next() {
            Some(Ok(id)) if self.generation.is_stop(id) => Split::default(),
            Some(Ok(id)) => self.splitter.push(&self.text.push(id)),
            Some(Err(error)) => {
                self.ended = true;
                return Some(Err(error));
            }
            None => {
                self.ended = true;
                let mut split = self.splitter.push(&self.text.finish());
                let rest = self.splitter.finish();
                split.reasoning.push_str(&rest.reasoning);
                split.content.push_str(&rest.content);
                split
            }
        };
        self.said.reasoning.push_str(&split.reasoning);
        self.said.content.push_str(&split.content);
        Some(Ok(split))
    }

    /// Reads to the end and returns all of it.
    ///
    /// # Errors
    /// When a step fails.
    pub fn finish(mut self) -> Result<Split> {
        while let Some(split) = self.next_split() {
            split?;
        }
        Ok(self.said.clone())
    }

    /// What was said so far.
    pub fn said(&self) -> &Split {
        &self.said
    }

    /// Why the answer ended, once it has.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.generation.finish_reason()
    }

    /// What it took so far.
    pub fn timings(&self) -> Timings {
        self.generation.timings()
    }
}

impl<B: VlmBackend> Iterator for Answer<'_, B> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        loop {
            match self.next_split()? {
                Ok(split) if split.content.is_empty() => {}
                Ok(split) => return Some(Ok(split.content)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<B: VlmBackend> Drop for Answer<'_, B> {
    fn drop(&mut self) {
        if let Some(messages) = self.record.take() {
            let Split { reasoning, content } = std::mem::take(&mut self.said);
            messages.push(Message {
                content: Some(Content::Text(content)),
                reasoning_content: (!reasoning.is_empty()).then_some(reasoning),
                ..Message::text(Role::Assistant, "")
            });
        }
    }
}

//! Thoughts and answer told apart while they stream.

/// Opens the thoughts.
pub const THINK_OPEN: &str = "<think>";
/// Closes the thoughts.
pub const THINK_CLOSE: &str = "</think>";

/// What the prompt says about the text to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasoningStart {
    /// Thinking is off: everything is the answer, whatever tags it holds.
    Off,
    /// The prompt ends inside the thoughts (`<think>\n`).
    Open,
    /// Thinking is on, and the model opens the thoughts itself or does without.
    Expected,
}

/// A piece of output by kind; either may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Split {
    /// Thoughts.
    pub reasoning: String,
    /// Answer.
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Reasoning,
    Gap,
    Content,
}

/// Splits streamed text at the think tags, also when a tag comes in several pieces.
///
/// Line breaks around the thoughts belong to neither side, as the chat template writes them.
#[derive(Debug, Clone)]
pub struct ReasoningSplitter {
    state: State,
    held: String,
    /// Whether thoughts have begun, so that line breaks before them can be dropped.
    begun: bool,
}

impl ReasoningSplitter {
    /// A splitter for what follows such a prompt.
    pub fn new(start: ReasoningStart) -> Self {
        let state = match start {
            ReasoningStart::Off => State::Content,
            ReasoningStart::Open => State::Reasoning,
            ReasoningStart::Expected => State::Start,
        };
        Self { state, held: String::new(), begun: false }
    }

    /// Adds a piece of text and returns what is certain now.
    pub fn push(&mut self, piece: &str) -> Split {
        let mut split = Split::default();
        self.held.push_str(piece);
        while self.step(&mut split) {}
        split
    }

    /// Ends the text: what was held back belongs to the side it stood on.
    pub fn finish(&mut self) -> Split {
        let mut split = Split::default();
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Reasoning => split.reasoning.push_str(held.trim_end_matches('\n')),
            State::Start | State::Content => split.content.push_str(&held),
            State::Gap => {}
        }
        split
    }

    /// Moves held text out as far as it is certain; true when the state changed and another look is due.
    fn step(&mut self, split: &mut Split) -> bool {
        match self.state {
            State::Start => {
                let body = self.held.trim_start();
                if let Some(rest) = body.strip_prefix(THINK_OPEN) {
                    self.held = rest.to_owned();
                    self.state = State::Reasoning;
                    true
                } else if THINK_OPEN.starts_with(body) {
                    false
                } else {
                    self.state = State::Content;
                    true
                }
            }
            State::Reasoning => self.step_reasoning(split),
            State::Gap => {
                let body = self.held.trim_start_matches('\n');
                let found = !body.is_empty();
                self.held = body.to_owned();
                if found {
                    self.state = State::Content;
                }
                found
            }
            State::Content => {
                split.content.push_str(&std::mem::take(&mut self.held));
                false
            }
        }
    }

    fn step_reasoning(&mut self, split: &mut Split) -> bool {
        if !self.begun {
            self.held = self.held.trim_start_matches('\n').to_owned();
        }
        if let Some(at) = self.held.find(THINK_CLOSE) {
            split.reasoning.push_str(self.held[..at].trim_end_matches('\n'));
            self.held.drain(..at + THINK_CLOSE.len());
            self.state = State::Gap;
            return true;
        }
        // A tail that may become the tag, and the line breaks before it, wait.
        let tail =
            (1..THINK_CLOSE.len()).rev().find(|&n| self.held.ends_with(&THINK_CLOSE[..n])).unwrap_or(0);
        let certain = self.held[..self.held.len() - tail].trim_end_matches('\n').len();
        self.begun |= certain > 0;
        split.reasoning.extend(self.held.drain(..certain));
        false
    }
}

#[cfg(test)]
mod tests;

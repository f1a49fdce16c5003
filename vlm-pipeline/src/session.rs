//! What a conversation leaves behind, and how much of it the next prompt can use.

use fermi_blas::Cpu;
use qwen3_hybrid::{Backbone, Sequence};

use crate::Result;
use crate::pipeline::VlmBackend;

/// What stands at one position of a prompt: two are the same only if the picture is, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) id: u32,
    /// The content hash of the picture whose embedding takes the id's place.
    pub(crate) image: Option<[u8; 32]>,
}

impl Key {
    pub(crate) fn text(id: u32) -> Self {
        Self { id, image: None }
    }
}

/// A copy of a state, with what led to it.
#[derive(Debug)]
struct Kept<B: VlmBackend> {
    keys: Vec<Key>,
    sequence: Sequence<B>,
}

/// A conversation's state: independent of the pipeline's scratch, it can be kept and dropped at will.
///
/// After a prompt it holds a copy of the state at the last chunk boundary that the next turn's prompt will pass too. A prompt
/// that begins with the same tokens and the same pictures goes on from there, with exactly the passes that a run
/// from the start would make, so its result is the same to the last bit; any other prompt starts from nothing.
#[derive(Debug)]
pub struct Session<B: VlmBackend = Cpu> {
    working: Option<Sequence<B>>,
    kept: Option<Kept<B>>,
}

impl<B: VlmBackend> Default for Session<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: VlmBackend> Session<B> {
    pub(crate) fn new() -> Self {
        Self { working: None, kept: None }
    }

    /// Forgets everything and gives the memory back.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Tokens of the state that a next prompt may go on from.
    pub fn kept_tokens(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.keys.len())
    }

    /// Brings the working state to where this prompt can go on from, and says how many of its tokens that covers: never all.
    pub(crate) fn begin(&mut self, backbone: &Backbone<B>, keys: &[Key]) -> Result<usize> {
        let device = backbone.device();
        let working = match &mut self.working {
            Some(working) => working,
            empty => empty.insert(backbone.sequence()?),
        };
        match &self.kept {
            Some(kept) if kept.keys.len() < keys.len() && keys.starts_with(&kept.keys) => {
                working.copy_from(device, &kept.sequence)?;
                Ok(kept.keys.len())
            }
            _ => {
                if !working.is_empty() {
                    working.clear(device)?;
                }
                Ok(0)
            }
        }
    }

    /// The working state, which [`Session::begin`] has made.
    pub(crate) fn working(&mut self) -> Option<&mut Sequence<B>> {
        self.working.as_mut()
    }

    /// Keeps a copy of the working state, which has just read these tokens.
    pub(crate) fn keep(&mut self, device: &B, keys: &[Key]) -> Result<()> {
        let Some(working) = &self.working else { return Ok(()) };
        let sequence = match self.kept.take() {
            Some(mut kept) => {
                kept.sequence.copy_from(device, working)?;
                kept.sequence
            }
            None => working.try_clone(device)?,
        };
        self.kept = Some(Kept { keys: keys.to_vec(), sequence });
        Ok(())
    }
}

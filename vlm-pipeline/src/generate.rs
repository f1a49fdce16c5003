//! From a prompt's ids to the ids that follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fermi_blas::{Cpu, Matrix};
use qwen3_hybrid::{Backbone, Input, Positions, Sampler, Sampling};

use crate::pipeline::VlmBackend;
use crate::session::{Key, Session};
use crate::stop::{FinishReason, StopIds};
use crate::{Error, Result};

/// Ends a generation from outside: between two steps, or between two chunks of a prompt.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that nobody has pulled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the end.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How an answer is generated. The default is greedy, until the model stops or the context is full.
#[derive(Debug, Clone, Default)]
pub struct GenerateOptions {
    /// The most tokens to generate; as many as fit the context if none is given.
    pub max_new_tokens: Option<usize>,
    /// How a token is chosen.
    pub sampling: Sampling,
    /// Whether stop tokens are like any other.
    pub ignore_eos: bool,
    /// What ends the generation early.
    pub cancel: Option<Cancel>,
}

/// What a generation took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, how many the session already held.
    pub reused_tokens: usize,
    /// Tokens generated, a stop token included.
    pub new_tokens: usize,
    /// Time for the rest of the prompt.
    pub prefill: Duration,
    /// Time for the new tokens.
    pub decode: Duration,
}

/// Ids as they are generated; the stop token is the last one, as in the reference.
///
/// The prompt has been run when it is handed out; each `next` then runs one step. After the last id
/// [`Generation::finish_reason`] tells why it was the last.
#[derive(Debug)]
pub struct Generation<'a, B: VlmBackend = Cpu> {
    backbone: &'a mut Backbone<B>,
    session: &'a mut Session<B>,
    stop: Arc<StopIds>,
    ignore_eos: bool,
    cancel: Option<Cancel>,
    sampler: Sampler,
    /// Prompt and answer so far.
    history: Vec<u32>,
    /// Tokens that may still come.
    remaining: usize,
    /// The newest token, which the backbone has not read yet.
    unread: Option<u32>,
    /// After an error nothing comes any more, and there is no reason.
    failed: bool,
    reason: Option<FinishReason>,
    timings: Timings,
}

/// A prompt on its way into the backbone.
struct Prefill<'p, B: VlmBackend> {
    ids: Vec<u32>,
    keys: Vec<Key>,
    /// Where the rows of `embeddings` stand.
    pads: Vec<usize>,
    embeddings: Option<&'p Matrix<B>>,
}

impl<'p, B: VlmBackend> Prefill<'p, B> {
    fn new(keys: Vec<Key>, embeddings: Option<&'p Matrix<B>>) -> Self {
        let ids = keys.iter().map(|key| key.id).collect();
        let pads = keys.iter().enumerate().filter(|(_, key)| key.image.is_some()).map(|(at, _)| at).collect();
        Self { ids, keys, pads, embeddings }
    }

    /// Runs the tokens `start..end`, and leaves logits if they are the last ones.
    fn run(
        &self,
        backbone: &mut Backbone<B>,
        session: &mut Session<B>,
        start: usize,
        end: usize,
    ) -> Result<()> {
        let rows = self.pads.partition_point(|&at| at < start)..self.pads.partition_point(|&at| at < end);
        let pads: Vec<usize> = self.pads[rows.clone()].iter().map(|at| at - start).collect();
        let ids = &self.ids[start..end];
        let input = match self.embeddings {
            Some(embeddings) if !pads.is_empty() => {
                Input::Mixed { ids, positions: &pads, embeddings: embeddings.row_range(rows)? }
            }
            _ => Input::Ids(ids),
        };
        let positions = if end == self.ids.len() { Positions::Last } else { Positions::None };
        let Some(sequence) = session.working() else { return Ok(()) };
        Ok(backbone.forward(sequence, input, positions, &mut ())?)
    }
}

impl<'a, B: VlmBackend> Generation<'a, B> {
    /// Runs a prompt. A copy of the state is kept at the last chunk boundary within its first `lasting` tokens.
    pub(crate) fn start(
        backbone: &'a mut Backbone<B>,
        session: &'a mut Session<B>,
        prompt: (Vec<Key>, Option<&Matrix<B>>),
        lasting: usize,
        stop: Arc<StopIds>,
        options: &GenerateOptions,
    ) -> Result<Self> {
        let begun = Instant::now();
        let vocabulary = backbone.config().vocab_size;
        let sampler = Sampler::new(&options.sampling, vocabulary)?;
        let prefill = Prefill::new(prompt.0, prompt.1);
        let length = prefill.ids.len();
        let room = backbone.options().context_length.saturating_sub(length);
        let reused = session.begin(backbone, &prefill.keys)?;
        let mut generation = Self {
            backbone,
            session,
            stop,
            ignore_eos: options.ignore_eos,
            cancel: options.cancel.clone(),
            sampler,
            history: Vec::new(),
            remaining: options.max_new_tokens.unwrap_or(usize::MAX).min(room),
            unread: None,
            failed: false,
            reason: None,
            timings: Timings { prompt_tokens: length, reused_tokens: reused, ..Timings::default() },
        };
        generation.prefill(&prefill, reused, lasting)?;
        generation.history = prefill.ids;
        if generation.remaining == 0 {
            generation.reason.get_or_insert(FinishReason::Length);
        }
        generation.timings.prefill = begun.elapsed();
        Ok(generation)
    }

    fn prefill(&mut self, prompt: &Prefill<'_, B>, reused: usize, lasting: usize) -> Result<()> {
        let chunk = self.backbone.options().prefill_chunk;
        let boundary = lasting / chunk * chunk;
        let length = prompt.ids.len();
        if length == 0 {
            return Err(Error::Backbone(qwen3_hybrid::Error::EmptyInput));
        }
        let mut start = reused;
        while start < length {
            if self.is_cancelled() {
                return Ok(());
            }
            let end = length.min((start / chunk + 1) * chunk);
            prompt.run(self.backbone, self.session, start, end)?;
            if end == boundary {
                self.session.keep(self.backbone.device(), &prompt.keys[..end])?;
            }
            start = end;
        }
        Ok(self.backbone.device().synchronize()?)
    }

    fn is_cancelled(&mut self) -> bool {
        let cancelled = self.cancel.as_ref().is_some_and(Cancel::is_cancelled);
        if cancelled {
            self.reason = Some(FinishReason::Cancelled);
        }
        cancelled
    }

    /// Reads the logits from which the newest id was chosen, `[vocabulary]`; those after the prompt before the first.
    ///
    /// # Errors
    /// [`Error::Backbone`] when `logits` is not as long as the vocabulary, or the device fails.
    pub fn read_logits(&self, logits: &mut [f32]) -> Result<()> {
        Ok(self.backbone.read_logits(logits)?)
    }

    /// [`Generation::read_logits`] in a vector of their own.
    ///
    /// # Errors
    /// When the device fails.
    pub fn logits(&self) -> Result<Vec<f32>> {
        let mut logits = vec![0.0; self.backbone.config().vocab_size];
        self.read_logits(&mut logits)?;
        Ok(logits)
    }

    /// Why no more ids come, once that is so.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.reason
    }

    /// What it took so far.
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// Whether this token, which was just generated, ended the answer.
    pub(crate) fn is_stop(&self, id: u32) -> bool {
        !self.ignore_eos && self.stop.contains(id)
    }

    fn step(&mut self) -> Result<u32> {
        if let (Some(id), Some(sequence)) = (self.unread.take(), self.session.working()) {
            self.backbone.step(sequence, id)?;
        }
        let id = self.backbone.choose(&mut self.sampler, &self.history)?;
        self.history.push(id);
        self.remaining -= 1;
        self.timings.new_tokens += 1;
        if self.is_stop(id) {
            self.reason = Some(FinishReason::Stop);
        } else if self.remaining == 0 {
            self.reason = Some(FinishReason::Length);
        } else {
            self.unread = Some(id);
        }
        Ok(id)
    }
}

impl<B: VlmBackend> Iterator for Generation<'_, B> {
    type Item = Result<u32>;

    fn next(&mut self) -> Option<Result<u32>> {
        if self.failed || self.reason.is_some() || self.is_cancelled() {
            return None;
        }
        let begun = Instant::now();
        let id = self.step();
        self.failed = id.is_err();
        self.timings.decode += begun.elapsed();
        Some(id)
    }
}

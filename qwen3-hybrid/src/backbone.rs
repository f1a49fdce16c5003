//! The whole backbone: weights, scratch, and passes over sequences.

use std::sync::Arc;

use fermi_blas::{Checkpoint, Cpu, Matrix, MemoryPlan, Observer, View, Weight};
use gdn_scan::ScanBackend;

use crate::activations::{Activations, Tables, memory_plan};
use crate::embedding::embed;
use crate::head::Head;
use crate::layer::{Layer, Pass};
use crate::tensors::{Loader, layer_prefix};
use crate::{Config, Error, Input, Options, Result, Sampler, Sequence, TensorLayout};

/// Everything of a backbone that never changes.
#[derive(Debug)]
struct Weights<B: ScanBackend> {
    embed_tokens: Weight<B>,
    layers: Vec<Layer<B>>,
    norm: Matrix<B>,
    /// Missing when the embedding table is the head.
    lm_head: Option<Weight<B>>,
    tables: Tables<B>,
}

/// Which positions of a pass get logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Positions {
    /// None: the pass only extends the sequence.
    None,
    /// The last one.
    #[default]
    Last,
    /// All of them, for an observer: [`Options::logits_rows`] at a time.
    All,
}

/// A Qwen3.5 text backbone on one device.
///
/// Weights are shared by all clones made with [`Backbone::share`]; each has scratch of its own and runs one pass at a time.
/// What a pass leaves behind goes into the [`Sequence`] that it is given, so one backbone serves any number of sequences.
/// After load a pass allocates nothing, and moves only ids to the device and logits or the chosen id back.
#[derive(Debug)]
pub struct Backbone<B: ScanBackend = Cpu> {
    device: B,
    config: Arc<Config>,
    options: Options,
    weights: Arc<Weights<B>>,
    activations: Activations<B>,
}

impl<B: ScanBackend> Backbone<B> {
    /// Reads the backbone out of a checkpoint and allocates the scratch of a pass.
    ///
    /// Tensors stand under the config's layout or, if the checkpoint does not have that, under the other one. What the
    /// checkpoint holds besides is told by [`Checkpoint::unused`].
    ///
    /// # Errors
    /// [`Error::Blas`] when a tensor is missing or has another shape (both with its name), a file cannot be read or the
    /// device has no room; [`Error::LoadOption`] when an option is 0.
    pub fn load(device: &B, checkpoint: &Checkpoint, config: &Config, options: Options) -> Result<Self> {
        config.validate()?;
        // On the device's own threads, which share the conversion of what is read.
        device.run_pass(|| Self::load_here(device, checkpoint, config, options.checked(config)?))
    }

    fn load_here(device: &B, checkpoint: &Checkpoint, config: &Config, options: Options) -> Result<Self> {
        let prefix = layout(checkpoint, config).prefix();
        let loader = Loader { device, checkpoint, precision: options.precision, prefix };
        let mut layers = Vec::with_capacity(config.num_hidden_layers);
        let embed_tokens = loader.weight(&crate::embedding::tensor(config))?;
        for (index, kind) in config.layer_types.iter().enumerate() {
            layers.push(Layer::load(&loader.under(&layer_prefix(prefix, index)), config, *kind)?);
        }
        let norm = loader.matrix(&crate::head::norm_tensor(config))?;
        let lm_head = if config.tie_word_embeddings {
            None
        } else {
            Some(loader.under("").weight(&crate::head::tensor(config))?)
        };
        // The largest first: where it does not fit, nothing else need be made for so many tokens.
        let activations = Activations::new(device, config, &options)?;
        let tables = Tables::new(device, config, &options)?;
        Ok(Self {
            device: device.clone(),
            activations,
            config: Arc::new(config.clone()),
            options,
            weights: Arc::new(Weights { embed_tokens, layers, norm, lm_head, tables }),
        })
    }

    /// Another backbone with the same weights and scratch of its own, to run passes at the same time.
    ///
    /// # Errors
    /// [`fermi_blas::Error::OutOfMemory`]
    pub fn share(&self) -> Result<Self> {
        Ok(Self {
            device: self.device.clone(),
            activations: Activations::new(&self.device, &self.config, &self.options)?,
            config: Arc::clone(&self.config),
            options: self.options.clone(),
            weights: Arc::clone(&self.weights),
        })
    }

    /// Bytes that a backbone and one of its sequences will hold, told before anything is loaded.
    ///
    /// # Errors
    /// [`Error::LoadOption`] when an option is 0.
    pub fn memory_plan(device: &B, config: &Config, options: &Options) -> Result<MemoryPlan> {
        config.validate()?;
        memory_plan(device, config, options)
    }

    /// The device that it runs on.
    pub fn device(&self) -> &B {
        &self.device
    }

    /// What config.json says of it.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it was loaded with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// An empty sequence with room for [`Options::context_length`] tokens.
    ///
    /// # Errors
    /// [`fermi_blas::Error::OutOfMemory`]
    pub fn sequence(&self) -> Result<Sequence<B>> {
        Sequence::new(&self.device, &self.config, self.options.context_length)
    }

    /// Extends a sequence by an input and leaves the logits of its last position, see [`Backbone::logits`].
    ///
    /// # Errors
    /// As [`Backbone::forward`].
    pub fn prefill(&mut self, sequence: &mut Sequence<B>, input: Input<'_, B>) -> Result<()> {
        self.forward(sequence, input, Positions::Last, &mut ())
    }

    /// Extends a sequence by one token and leaves the logits of the next, see [`Backbone::logits`].
    ///
    /// # Errors
    /// As [`Backbone::forward`].
    pub fn step(&mut self, sequence: &mut Sequence<B>, id: u32) -> Result<()> {
        self.forward(sequence, Input::Ids(&[id]), Positions::Last, &mut ())
    }

    /// Extends a sequence by an input, in chunks that end at multiples of [`Options::prefill_chunk`] tokens of the
    /// sequence, while an observer sees `embeddings`, `layers.0`, ..., `norm` and `logits` of every chunk in turn.
    ///
    /// # Errors
    /// [`Error::EmptyInput`], [`Error::Vocabulary`], [`Error::ContextOverflow`], [`Error::Embeddings`],
    /// [`Error::EmbeddingPosition`], [`Error::ForeignSequence`] and [`Error::BrokenSequence`] are found before the sequence
    /// changes. A device's or an observer's error in between leaves the sequence broken.
    pub fn forward(
        &mut self,
        sequence: &mut Sequence<B>,
        input: Input<'_, B>,
        positions: Positions,
        observer: &mut impl Observer<B>,
    ) -> Result<()> {
        input.check(self.config.vocab_size, self.config.hidden_size)?;
        sequence.check(&self.config)?;
        let needed = sequence.len().saturating_add(input.len());
        let context_length = sequence.capacity().min(self.options.context_length);
        if needed > context_length {
            return Err(Error::ContextOverflow { needed, context_length });
        }
        let device = self.device.clone();
        device.run_pass(|| self.forward_chunks(sequence, input, positions, observer))
    }

    fn forward_chunks(
        &mut self,
        sequence: &mut Sequence<B>,
        input: Input<'_, B>,
        positions: Positions,
        observer: &mut impl Observer<B>,
    ) -> Result<()> {
        let mut start = 0;
        while start < input.len() {
            let until_boundary = self.options.prefill_chunk - sequence.len() % self.options.prefill_chunk;
            let tokens = until_boundary.min(input.len() - start);
            let rows = match positions {
                Positions::All => 0..tokens,
                Positions::Last if start + tokens == input.len() => tokens - 1..tokens,
                Positions::Last | Positions::None => 0..0,
            };
            sequence.begin();
            self.embed(input, start, tokens, observer)?;
            self.forward_layers(sequence, tokens, rows.len(), observer)?;
            if !rows.is_empty() {
                self.forward_head(tokens, rows, observer)?;
            }
            sequence.advance(tokens);
            start += tokens;
        }
        Ok(())
    }

    fn embed(
        &mut self,
        input: Input<'_, B>,
        start: usize,
        tokens: usize,
        observer: &mut impl Observer<B>,
    ) -> Result<()> {
        let ids = self.activations.ids.view_mut().column_range(0..tokens)?; // [1, T]
        let mut hidden = self.activations.hidden.row_range_mut(0..tokens)?; // [T, hidden]
        embed(&self.device, &self.weights.embed_tokens, input, start, ids, hidden.reborrow())?;
        Ok(observer.stage(format_args!("embeddings"), hidden.as_view())?)
    }

    /// Nothing reads what the last layer makes of a token, unless its logits are wanted: it computes those rows only, `last` at
    /// the end, and leaves the others as the layer before left them.
    fn forward_layers(
        &mut self,
        sequence: &mut Sequence<B>,
        tokens: usize,
        last: usize,
        observer: &mut impl Observer<B>,
    ) -> Result<()> {
        let history = sequence.len();
        let tables = &self.weights.tables;
        let pass = Pass {
            device: &self.device,
            history,
            positions: tables.positions.view().column_range(history..history + tokens)?,
            rotary: &tables.rotary,
            scan_chunk: self.options.scan_chunk,
        };
        let layers = self.weights.layers.len();
        for (index, (layer, state)) in self.weights.layers.iter().zip(&mut sequence.layers).enumerate() {
            let wanted = if index + 1 < layers || observer.observes() { tokens } else { last };
            layer.forward(&pass, tokens, wanted, state, &mut self.activations)?;
            let hidden = self.activations.hidden.row_range(0..tokens)?;
            observer.stage(format_args!("layers.{index}"), hidden)?;
        }
        Ok(())
    }

    fn forward_head(
        &mut self,
        tokens: usize,
        rows: std::ops::Range<usize>,
        observer: &mut impl Observer<B>,
    ) -> Result<()> {
        let Weights { embed_tokens, norm, lm_head, .. } = &*self.weights;
        let weight = lm_head.as_ref().unwrap_or(embed_tokens);
        let head = Head { device: &self.device, norm, weight, eps: self.config.rms_norm_eps };
        let Activations { hidden, normed, weights, head: activations, .. } = &mut self.activations;
        let mut normed = normed.row_range_mut(0..rows.len())?;
        head.normalize(hidden.row_range(0..tokens)?.row_range(rows)?, normed.reborrow())?;
        observer.stage(format_args!("norm"), normed.as_view())?;
        head.logits(normed.as_view(), activations, weights.view_mut(), observer)
    }

    /// The logits that the last pass left, `[1, vocab]`; zeros before the first.
    ///
    /// # Errors
    /// Those of any view, though the row is always there.
    pub fn logits(&self) -> Result<View<'_, B>> {
        let head = &self.activations.head;
        Ok(head.logits.row_range(head.newest..head.newest + 1)?)
    }

    /// [`Backbone::logits`] on the host.
    ///
    /// # Errors
    /// [`Error::Blas`] when `logits` is not as long as the vocabulary, or whatever the device's pending work failed with.
    pub fn read_logits(&self, logits: &mut [f32]) -> Result<()> {
        Ok(self.device.read(self.logits()?, logits)?)
    }

    /// The id of the first largest logit that the last pass left, chosen on the device.
    ///
    /// # Errors
    /// [`Error::NoGreedyChoice`] when a logit is NaN or none is finite.
    pub fn greedy(&mut self) -> Result<u32> {
        let head = &mut self.activations.head;
        let mut chosen = [0];
        let _span = self.device.span("choice");
        let logits = head.logits.row_range(head.newest..head.newest + 1)?;
        self.device.argmax(logits, head.chosen.view_mut())?;
        self.device.read(head.chosen.view(), &mut chosen)?;
        if chosen[0] == u32::MAX { Err(Error::NoGreedyChoice) } else { Ok(chosen[0]) }
    }

    /// The next token after the last pass: on the device when the sampler is greedy, else out of the logits on the host.
    ///
    /// `history` is what the repetition penalty counts.
    ///
    /// # Errors
    /// [`Error::NoGreedyChoice`], [`Error::LogitNan`], [`Error::NoChoice`]; [`Error::Blas`] when the sampler is for another
    /// vocabulary.
    pub fn choose(&mut self, sampler: &mut Sampler, history: &[u32]) -> Result<u32> {
        if sampler.is_greedy() {
            return self.greedy();
        }
        self.read_logits(sampler.logits_mut())?;
        let _span = self.device.span("choice");
        sampler.choose_own(history)
    }
}

/// The config's layout, unless only the other one is there.
fn layout(checkpoint: &Checkpoint, config: &Config) -> TensorLayout {
    let table = crate::embedding::tensor(config).name;
    let present = |layout: &TensorLayout| checkpoint.contains(&format!("{}{table}", layout.prefix()));
    [config.layout, TensorLayout::LanguageModel, TensorLayout::Model]
        .into_iter()
        .find(present)
        .unwrap_or(config.layout)
}

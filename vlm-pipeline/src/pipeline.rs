//! A checkpoint, ready to answer: tokenizer, tower and backbone on one device.

mod load;

use std::sync::Arc;

use fermi_blas::{Cpu, Matrix};
use gdn_scan::ScanBackend;
use qwen3_hybrid::Backbone;
use siglip2_tower::{Tower, WindowBackend};

use crate::answer::Answer;
use crate::chat::Chat;
use crate::generate::{GenerateOptions, Generation};
use crate::image::Image;
use crate::message::Request;
use crate::options::Options;
use crate::packing::preprocess;
use crate::preprocessor_config::PreprocessorConfig;
use crate::prompt::{Prompt, PromptBuilder};
use crate::session::{Key, Session};
use crate::slicing::Plan;
use crate::stop::StopIds;
use crate::template::RenderOptions;
use crate::{Error, Result};

/// A device that can run the whole pipeline.
pub trait VlmBackend: ScanBackend + WindowBackend {}

impl<B: ScanBackend + WindowBackend> VlmBackend for B {}

/// A picture as the backbone reads it.
///
/// Clones share the embeddings, which stay on the device.
#[derive(Debug)]
pub struct EncodedImage<B: VlmBackend = Cpu> {
    plan: Plan,
    /// Tells pictures apart in what a session remembers.
    hash: [u8; 32],
    /// One row a pad, `[pads, language width]`.
    embeddings: Arc<Matrix<B>>,
}

impl<B: VlmBackend> Clone for EncodedImage<B> {
    fn clone(&self) -> Self {
        Self { plan: self.plan, hash: self.hash, embeddings: Arc::clone(&self.embeddings) }
    }
}

impl<B: VlmBackend> EncodedImage<B> {
    /// How the picture was cut.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The embeddings of all its parts in the order of the prompt, float32 `[pads, language width]`.
    pub fn embeddings(&self) -> &Matrix<B> {
        &self.embeddings
    }
}

/// A vision-language model on one device: pictures and text in, text out.
///
/// Weights never change and are shared by all pipelines made with [`Pipeline::share`]. What a conversation leaves behind is in
/// its [`Session`]; the pipeline itself holds only scratch, so one serves any number of conversations in turn.
#[derive(Debug)]
pub struct Pipeline<B: VlmBackend = Cpu> {
    device: B,
    options: Options,
    /// Missing where the checkpoint has no tokenizer; raw ids still run.
    prompt: Option<Arc<PromptBuilder>>,
    preprocessor: PreprocessorConfig,
    /// Missing in a text model.
    tower: Option<Tower<B>>,
    backbone: Backbone<B>,
    stop: Arc<StopIds>,
    /// The id that embeddings take the place of.
    image_token: Option<u32>,
}

impl<B: VlmBackend> Pipeline<B> {
    /// Another pipeline with the same weights and scratch of its own, to run beside this one.
    ///
    /// # Errors
    /// When the device has no room for the scratch.
    pub fn share(&self) -> Result<Self> {
        Ok(Self {
            device: self.device.clone(),
            options: self.options.clone(),
            prompt: self.prompt.clone(),
            preprocessor: self.preprocessor.clone(),
            tower: self.tower.as_ref().map(Tower::share).transpose()?,
            backbone: self.backbone.share()?,
            stop: Arc::clone(&self.stop),
            image_token: self.image_token,
        })
    }

    /// The device that it runs on.
    pub fn device(&self) -> &B {
        &self.device
    }

    /// What it was loaded with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The image settings in force.
    pub fn preprocessor_config(&self) -> &PreprocessorConfig {
        &self.preprocessor
    }

    /// The backbone.
    pub fn backbone(&self) -> &Backbone<B> {
        &self.backbone
    }

    /// The tower, which a text model lacks.
    pub fn tower(&self) -> Option<&Tower<B>> {
        self.tower.as_ref()
    }

    /// The tower, to run it by itself.
    pub fn tower_mut(&mut self) -> Option<&mut Tower<B>> {
        self.tower.as_mut()
    }

    /// The tokens that end an answer.
    pub fn stop_ids(&self) -> &StopIds {
        &self.stop
    }

    /// What turns conversations into ids.
    ///
    /// # Errors
    /// [`Error::NoTokenizer`] when the checkpoint has no tokenizer.
    pub fn prompt_builder(&self) -> Result<&PromptBuilder> {
        self.prompt.as_deref().ok_or(Error::NoTokenizer)
    }

    /// What a picture of this size becomes.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn plan(&self, width: u32, height: u32) -> Result<Plan> {
        Plan::new(width, height, &self.preprocessor)
    }

    /// Runs a picture through the tower.
    ///
    /// # Errors
    /// [`Error::NoTower`] in a text model; [`Error::Tower`] when a slice is larger than a pass
    /// ([`Options::max_patches`]) or the device fails.
    pub fn encode(&mut self, image: &Image) -> Result<EncodedImage<B>> {
        let tower = self.tower.as_mut().ok_or(Error::NoTower)?;
        let prepared = preprocess(image, &self.preprocessor)?;
        let slices = prepared.slices.iter().map(|slice| siglip2_tower::Slice {
            pixel_values: &slice.pixel_values,
            grid: siglip2_tower::Grid { rows: slice.rows, columns: slice.cols },
        });
        let slices: Vec<_> = slices.collect();
        let embeddings = Arc::new(tower.encode(&slices)?);
        Ok(EncodedImage { plan: prepared.plan, hash: image.content_hash(), embeddings })
    }

    /// The prompt of a conversation whose image parts are, in order, these pictures.
    ///
    /// # Errors
    /// As [`PromptBuilder::build`], and [`Error::NoTokenizer`].
    pub fn prompt(
        &self,
        request: &Request,
        images: &[EncodedImage<B>],
        render: &RenderOptions,
    ) -> Result<Prompt> {
        let plans: Vec<Plan> = images.iter().map(|image| image.plan).collect();
        self.prompt_builder()?.build(request, &plans, render)
    }

    /// A conversation's state, empty. Its memory is allocated when it is first used.
    pub fn session(&self) -> Session<B> {
        Session::new()
    }

    /// Starts a conversation.
    pub fn chat(&mut self) -> Chat<'_, B> {
        Chat::new(self)
    }

    /// Answers one request: renders it, runs the prompt and returns the answer to be read piece by piece.
    ///
    /// The session is what earlier requests left; whatever of it this prompt does not begin with is forgotten.
    ///
    /// # Errors
    /// As [`Pipeline::prompt`] and [`Pipeline::generate`].
    pub fn answer<'a>(
        &'a mut self,
        session: &'a mut Session<B>,
        request: &Request,
        images: &[EncodedImage<B>],
        render: &RenderOptions,
        options: &GenerateOptions,
    ) -> Result<Answer<'a, B>> {
        let prompt = self.prompt(request, images, render)?;
        let lasting =
            if self.options.keep_prefix { self.lasting(&prompt, request, images, render) } else { 0 };
        let text = self.prompt_builder()?.tokenizer().stream();
        let generation = self.start(session, &prompt.ids, images, lasting, options)?;
        Ok(Answer::new(generation, text, prompt.reasoning))
    }

    /// Continues raw ids, in which the image tokens stand for the embeddings of `images` in order.
    ///
    /// # Errors
    /// [`Error::PromptTooLong`] with both lengths, [`Error::PadCount`], [`Error::NoImageToken`]; [`Error::Backbone`] for an
    /// empty prompt, an id outside the vocabulary, a sampling parameter out of bounds or a device that fails.
    pub fn generate<'a>(
        &'a mut self,
        session: &'a mut Session<B>,
        ids: &[u32],
        images: &[EncodedImage<B>],
        options: &GenerateOptions,
    ) -> Result<Generation<'a, B>> {
        self.start(session, ids, images, ids.len(), options)
    }

    /// How many of a prompt's tokens the next turn's prompt will begin with: those before the opening of the answer. A template
    /// that cannot do without the opening tells of none.
    fn lasting(
        &self,
        prompt: &Prompt,
        request: &Request,
        images: &[EncodedImage<B>],
        render: &RenderOptions,
    ) -> usize {
        let closed = RenderOptions { add_generation_prompt: false, ..render.clone() };
        let before = self.prompt(request, images, &closed).map(|closed| closed.ids).unwrap_or_default();
        prompt.ids.iter().zip(&before).take_while(|(a, b)| a == b).count()
    }

    fn start<'a>(
        &'a mut self,
        session: &'a mut Session<B>,
        ids: &[u32],
        images: &[EncodedImage<B>],
        lasting: usize,
        options: &GenerateOptions,
    ) -> Result<Generation<'a, B>> {
        let context = self.backbone.options().context_length;
        if ids.len() > context {
            return Err(Error::PromptTooLong { prompt: ids.len(), context });
        }
        let keys = self.keys(ids, images)?;
        let lasting = if self.options.keep_prefix { lasting.min(ids.len().saturating_sub(1)) } else { 0 };
        let embeddings = self.concatenated(images)?;
        let (backbone, stop) = (&mut self.backbone, Arc::clone(&self.stop));
        Generation::start(backbone, session, (keys, embeddings.as_deref()), lasting, stop, options)
    }

    /// What each token is: an id, or a row of a picture.
    fn keys(&self, ids: &[u32], images: &[EncodedImage<B>]) -> Result<Vec<Key>> {
        let rows: usize = images.iter().map(|image| image.embeddings.rows()).sum();
        let Some(token) = self.image_token else {
            return if images.is_empty() {
                Ok(ids.iter().map(|&id| Key::text(id)).collect())
            } else {
                Err(Error::NoImageToken)
            };
        };
        let pads = ids.iter().filter(|&&id| id == token).count();
        // Without pictures an image token is read as the token that it is, as the reference reads it.
        if images.is_empty() {
            return Ok(ids.iter().map(|&id| Key::text(id)).collect());
        }
        if pads != rows {
            return Err(Error::PadCount { pads, embeddings: rows });
        }
        let mut hashes =
            images.iter().flat_map(|image| std::iter::repeat_n(image.hash, image.embeddings.rows()));
        let key = |&id: &u32| Key { id, image: if id == token { hashes.next() } else { None } };
        Ok(ids.iter().map(key).collect())
    }

    /// The embeddings of all pictures in one matrix, `[pads, language width]`; none without pictures.
    fn concatenated(&self, images: &[EncodedImage<B>]) -> Result<Option<Arc<Matrix<B>>>> {
        if let [only] = images {
            return Ok(Some(Arc::clone(&only.embeddings)));
        }
        let Some(first) = images.first() else { return Ok(None) };
        let rows = images.iter().map(|image| image.embeddings.rows()).sum();
        let mut all = Matrix::zeros(&self.device, rows, first.embeddings.columns())?;
        let mut start = 0;
        for image in images {
            let end = start + image.embeddings.rows();
            self.device.copy(image.embeddings.view(), all.row_range_mut(start..end)?)?;
            start = end;
        }
        Ok(Some(Arc::new(all)))
    }
}

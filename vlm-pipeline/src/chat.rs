//! A conversation of several turns.

use fermi_blas::Cpu;
use serde_json::Value;

use crate::Result;
use crate::answer::Answer;
use crate::generate::GenerateOptions;
use crate::image::Image;
use crate::message::{Message, Request, Role};
use crate::pipeline::{EncodedImage, Pipeline, VlmBackend};
use crate::session::Session;
use crate::template::{RenderOptions, Thinking};

/// A conversation: its messages, its pictures and the state that they left.
///
/// Pictures of earlier turns stay: each is run through the tower once, and every later prompt holds it where it was shown.
#[derive(Debug)]
pub struct Chat<'p, B: VlmBackend = Cpu> {
    pipeline: &'p mut Pipeline<B>,
    request: Request,
    images: Vec<EncodedImage<B>>,
    session: Session<B>,
    render: RenderOptions,
    generate: GenerateOptions,
}

impl<'p, B: VlmBackend> Chat<'p, B> {
    pub(crate) fn new(pipeline: &'p mut Pipeline<B>) -> Self {
        Self {
            pipeline,
            request: Request::default(),
            images: Vec::new(),
            session: Session::new(),
            render: RenderOptions::default(),
            generate: GenerateOptions::default(),
        }
    }

    /// Begins with a system message, in place of one that is there.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.request.messages.retain(|message| message.role != Role::System);
        self.request.messages.insert(0, Message::text(Role::System, text));
        self
    }

    /// Tells the model of tools, as JSON schemas.
    #[must_use]
    pub fn tools(mut self, tools: Vec<Value>) -> Self {
        self.request.tools = (!tools.is_empty()).then_some(tools);
        self
    }

    /// Whether the model thinks before it answers.
    #[must_use]
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.set_thinking(thinking);
        self
    }

    /// How answers are generated.
    #[must_use]
    pub fn generate(mut self, options: GenerateOptions) -> Self {
        self.set_generate(options);
        self
    }

    /// Whether the model thinks from now on.
    pub fn set_thinking(&mut self, thinking: Thinking) {
        self.render.thinking = thinking;
    }

    /// How answers are generated from now on.
    pub fn set_generate(&mut self, options: GenerateOptions) {
        self.generate = options;
    }

    /// What was said so far.
    pub fn messages(&self) -> &[Message] {
        &self.request.messages
    }

    /// Begins anew; a system message and the tools stay.
    pub fn clear(&mut self) {
        self.request.messages.retain(|message| message.role == Role::System);
        self.images.clear();
        self.session.clear();
    }

    /// Shows pictures, asks, and returns the answer to be read piece by piece.
    ///
    /// # Errors
    /// When a picture or the prompt fails (see [`Pipeline::encode`] and [`Pipeline::answer`]); the conversation is then as it
    /// was before.
    pub fn ask(&mut self, images: &[Image], text: impl Into<String>) -> Result<Answer<'_, B>> {
        let before = self.images.len();
        for image in images {
            match self.pipeline.encode(image) {
                Ok(encoded) => self.images.push(encoded),
                Err(error) => {
                    self.images.truncate(before);
                    return Err(error);
                }
            }
        }
        self.request.messages.push(Message::user(images.len(), text));
        let Self { pipeline, request, images, session, render, generate } = self;
        match pipeline.answer(session, request, images, render, generate) {
            Ok(answer) => Ok(answer.recorded_in(&mut request.messages)),
            Err(error) => {
                images.truncate(before);
                request.messages.pop();
                Err(error)
            }
        }
    }
}

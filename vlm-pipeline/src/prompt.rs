//! From a conversation to the token ids of its prompt.
//!
//! The chat template leaves one `<|image_pad|>` for each picture. It becomes, with one pad for each embedding that the
//! tower makes of a part,
//!
//! ```text
//! <image_id>K</image_id><image>{pad*n}</image><slice>{pad*m}</slice>...\n<slice>{pad*m}</slice>...
//! ```
//!
//! where `K` counts the prompt's pictures from 0 and a line break parts the rows of the slices.

use std::ops::Range;
use std::path::Path;

use crate::control::Marks;
use crate::message::Request;
use crate::preprocessor_config::PreprocessorConfig;
use crate::reasoning::{ReasoningStart, THINK_CLOSE, THINK_OPEN};
use crate::slicing::Plan;
use crate::template::{ChatTemplate, RenderOptions, Thinking, context};
use crate::tokenizer::Tokenizer;
use crate::{Error, Result};

/// A conversation as the model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The rendered conversation, one placeholder a picture.
    pub text: String,
    /// The token ids, placeholders expanded.
    pub ids: Vec<u32>,
    /// Where each picture stands in `ids`, from its first to its last control token.
    pub images: Vec<Range<usize>>,
    /// What the prompt's end says about thoughts.
    pub reasoning: ReasoningStart,
}

/// The control tokens around pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImageTokens {
    pad: u32,
    image: (u32, u32),
    slice: (u32, u32),
    image_id: (u32, u32),
}

impl ImageTokens {
    fn of(tokenizer: &Tokenizer) -> Result<Self> {
        let id = |name: &str, otherwise: &str| tokenizer.require(tokenizer.named(name).unwrap_or(otherwise));
        Ok(Self {
            pad: id("image_token", "<|image_pad|>")?,
            image: (id("image_start_token", "<image>")?, id("image_end_token", "</image>")?),
            slice: (id("slice_start_token", "<slice>")?, id("slice_end_token", "</slice>")?),
            image_id: (id("image_id_start_token", "<image_id>")?, id("image_id_end_token", "</image_id>")?),
        })
    }
}

/// Builds prompts for one checkpoint.
#[derive(Debug, Clone)]
pub struct PromptBuilder {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    /// Whether pictures are numbered.
    use_image_id: bool,
}

impl PromptBuilder {
    /// Reads a checkpoint's tokenizer, chat template and image settings.
    ///
    /// # Errors
    /// A file that cannot be read or understood.
    pub fn load(dir: &Path) -> Result<Self> {
        let tokenizer = Tokenizer::load(dir)?;
        let template = ChatTemplate::load(dir, &tokenizer)?;
        let use_image_id = PreprocessorConfig::from_dir(dir)?.use_image_id;
        Ok(Self { tokenizer, template, use_image_id })
    }

    /// Puts the parts together.
    pub fn new(tokenizer: Tokenizer, template: ChatTemplate, use_image_id: bool) -> Self {
        Self { tokenizer, template, use_image_id }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The chat template.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The id that stands for one embedding of a picture.
    ///
    /// # Errors
    /// [`Error::MissingToken`] when the tokenizer has none.
    pub fn image_pad(&self) -> Result<u32> {
        Ok(ImageTokens::of(&self.tokenizer)?.pad)
    }

    /// Renders and encodes a conversation whose pictures, in order, have these plans.
    ///
    /// # Errors
    /// [`Error::ImageCount`] when the conversation does not place as many pictures; [`Error::TemplateRaised`] when the template
    /// refuses it.
    pub fn build(&self, request: &Request, plans: &[Plan], options: &RenderOptions) -> Result<Prompt> {
        let mut context = context(request, options, &self.tokenizer.template_variables());
        let as_given = serde_json::Value::Object(context.clone()).to_string();
        let marks = Marks::absent_from([as_given.as_str(), self.template.source()])?;
        for name in
            ["messages", "tools"].into_iter().chain(request.chat_template_kwargs.keys().map(String::as_str))
        {
            if let Some(value) = context.get_mut(name) {
                marks.mark_value(value, &self.tokenizer);
            }
        }
        let marked = self.template.render_context(context)?;
        let unexpanded = self.tokenizer.encode_marked(&marked, Some(marks))?;
        let (ids, images) = self.expand(unexpanded, plans)?;
        let reasoning = self.reasoning_start(&ids, options.thinking);
        Ok(Prompt { text: marks.without(&marked), ids, images, reasoning })
    }

    /// Replaces each placeholder by its picture's control tokens and pads.
    fn expand(&self, ids: Vec<u32>, plans: &[Plan]) -> Result<(Vec<u32>, Vec<Range<usize>>)> {
        let tokens = match ImageTokens::of(&self.tokenizer) {
            Ok(tokens) => tokens,
            // A text model has no such tokens, and needs none without pictures.
            Err(_) if plans.is_empty() => return Ok((ids, Vec::new())),
            Err(error) => return Err(error),
        };
        let placeholders = ids.iter().filter(|&&id| id == tokens.pad).count();
        if placeholders != plans.len() {
            return Err(Error::ImageCount { placeholders, images: plans.len() });
        }
        let line_break = self.tokenizer.encode_plain("\n")?;
        let mut expanded = Vec::with_capacity(ids.len());
        let mut images = Vec::with_capacity(plans.len());
        let mut plans = plans.iter();
        for id in ids {
            let Some(plan) = (id == tokens.pad).then(|| plans.next()).flatten() else {
                expanded.push(id);
                continue;
            };
            let start = expanded.len();
            if self.use_image_id {
                expanded.push(tokens.image_id.0);
                expanded.extend(self.tokenizer.encode_plain(&images.len().to_string())?);
                expanded.push(tokens.image_id.1);
            }
            push_parts(&mut expanded, &tokens, plan, &line_break);
            images.push(start..expanded.len());
        }
        Ok((expanded, images))
    }

    fn reasoning_start(&self, ids: &[u32], thinking: Thinking) -> ReasoningStart {
        let open = self.tokenizer.token_id(THINK_OPEN);
        let close = self.tokenizer.token_id(THINK_CLOSE);
        let last = ids.iter().rposition(|&id| Some(id) == open || Some(id) == close);
        match last.filter(|&at| self.tokenizer.decode(&ids[at + 1..]).trim().is_empty()) {
            Some(at) if Some(ids[at]) == open => ReasoningStart::Open,
            Some(_) => ReasoningStart::Off,
            None if thinking == Thinking::Off => ReasoningStart::Off,
            None => ReasoningStart::Expected,
        }
    }
}

/// The overview, then the slices row by row.
fn push_parts(ids: &mut Vec<u32>, tokens: &ImageTokens, plan: &Plan, line_break: &[u32]) {
    let cols = plan.grid.map_or(1, |grid| grid.cols as usize);
    for (part, pads) in plan.pads().into_iter().enumerate() {
        let (open, close) = if part == 0 { tokens.image } else { tokens.slice };
        if part > 1 && (part - 1) % cols == 0 {
            ids.extend_from_slice(line_break);
        }
        ids.push(open);
        ids.extend(std::iter::repeat_n(tokens.pad, pads));
        ids.push(close);
    }
}

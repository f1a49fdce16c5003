//! The checkpoint's chat template, rendered as Jinja2 renders it under transformers.

mod json;
mod python;
mod time;

use std::path::Path;
use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, Value as Jinja};
use serde_json::{Map, Value};

use crate::files::{read_json_if_there, read_text_if_there};
use crate::message::Request;
use crate::tokenizer::Tokenizer;
use crate::{Error, Result};

/// What a checkpoint without a template of its own gets: ChatML turns, think tags and image parts as MiniCPM-V-4.6 reads them.
pub const DEFAULT_TEMPLATE: &str = include_str!("template/default.jinja");

const NAME: &str = "chat_template";

/// Whether the model thinks before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Thinking {
    /// It answers at once.
    #[default]
    Off,
    /// It thinks first.
    On,
    /// As the template has it when nothing is said.
    TemplateDefault,
}

impl Thinking {
    fn flag(self) -> Option<bool> {
        match self {
            Self::Off => Some(false),
            Self::On => Some(true),
            Self::TemplateDefault => None,
        }
    }
}

/// How a conversation is rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderOptions {
    /// Whether the text ends with the opening of the answer.
    pub add_generation_prompt: bool,
    /// Whether the model is to think.
    pub thinking: Thinking,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { add_generation_prompt: true, thinking: Thinking::Off }
    }
}

/// A compiled chat template.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::TemplateSyntax`] when it is no Jinja.
    pub fn new(source: &str) -> Result<Self> {
        Self::with_clock(source, SystemTime::now)
    }

    /// Compiles a template whose `strftime_now` reads this clock (in UTC).
    ///
    /// # Errors
    /// [`Error::TemplateSyntax`] when it is no Jinja.
    pub fn with_clock(source: &str, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Result<Self> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|source| Error::TemplateSyntax { source: source.into() })?);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(python::method);
        environment.set_formatter(python::write);
        environment.add_filter("tojson", json::tojson);
        environment.add_filter("trim", python::trim);
        environment.add_filter("string", python::string);
        environment.add_test("sequence", python::is_sequence);
        environment.add_test("iterable", python::is_iterable);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", move |format: &str| time::strftime(format, clock()));
        environment
            .add_template_owned(NAME, without_generation_tags(source))
            .map_err(|source| Error::TemplateSyntax { source: source.into() })?;
        Ok(Self { environment, source: source.to_owned() })
    }

    /// The checkpoint's template: `chat_template.jinja`, else `chat_template.json`, else the one in `tokenizer_config.json`, else
    /// [`DEFAULT_TEMPLATE`].
    ///
    /// # Errors
    /// A file that cannot be read, or a template that is no Jinja.
    pub fn load(dir: &Path, tokenizer: &Tokenizer) -> Result<Self> {
        if let Some(source) = read_text_if_there(&dir.join("chat_template.jinja"))? {
            return Self::new(&source);
        }
        let file = read_json_if_there(&dir.join("chat_template.json"))?.unwrap_or(Value::Null);
        let source = file["chat_template"].as_str().or_else(|| tokenizer.template_in_config());
        Self::new(source.unwrap_or(DEFAULT_TEMPLATE))
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a conversation as it is: control tokens typed by a user cannot be told from the template's any more.
    ///
    /// `variables` are the tokenizer's named tokens and the like; the request's own variables go before them.
    ///
    /// # Errors
    /// [`Error::TemplateRaised`] when the template refuses the conversation, [`Error::TemplateRender`] when it fails.
    pub fn render(
        &self,
        request: &Request,
        options: &RenderOptions,
        variables: &Map<String, Value>,
    ) -> Result<String> {
        self.render_context(context(request, options, variables))
    }

    pub(crate) fn render_context(&self, context: Map<String, Value>) -> Result<String> {
        let template = self.environment.get_template(NAME).map_err(render_error)?;
        template.render(Jinja::from(Serde(context))).map_err(render_error)
    }
}

/// Everything that a template sees of a request.
pub(crate) fn context(
    request: &Request,
    options: &RenderOptions,
    variables: &Map<String, Value>,
) -> Map<String, Value> {
    let mut context = variables.clone();
    context.extend(request.chat_template_kwargs.clone());
    context
        .insert("messages".into(), request.messages.iter().map(|message| message.template_value()).collect());
    context.insert("tools".into(), request.tools.clone().map_or(Value::Null, Value::Array));
    context.insert("documents".into(), Value::Null);
    context.insert("add_generation_prompt".into(), options.add_generation_prompt.into());
    if let Some(flag) = options.thinking.flag() {
        context.insert("enable_thinking".into(), flag.into());
    }
    context
}

/// The exception that a template raises on purpose.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn raise_exception(message: &Jinja) -> std::result::Result<Jinja, minijinja::Error> {
    let message = python::to_str(message);
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, "raised by the template")
        .with_source(Raised(message)))
}

fn render_error(error: minijinja::Error) -> Error {
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(at) = cause {
        if let Some(Raised(message)) = at.downcast_ref::<Raised>() {
            return Error::TemplateRaised { message: message.clone() };
        }
        cause = at.source();
    }
    Error::TemplateRender { source: error.into() }
}

/// transformers' `{% generation %}` blocks only tell which text the assistant wrote: their content stays, the tags become a
/// condition that always holds, with the same white space control.
fn without_generation_tags(source: &str) -> String {
    let mut plain = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        plain.push_str(before);
        let Some(end) = tag.find("%}").map(|end| end + 2) else {
            rest = tag;
            break;
        };
        let word = tag[2..end - 2].trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replacement = match word {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        match replacement {
            Some(replacement) => plain.push_str(&tag[..end].replacen(word, replacement, 1)),
            None => plain.push_str(&tag[..end]),
        }
        rest = &tag[end..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests;

//! Conversations as OpenAI-style clients send them.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::image::{Image, Limits};
use crate::{Error, Result};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Instructions for the whole conversation.
    System,
    /// Newer clients' word for system; a template may refuse it.
    Developer,
    /// The person asking.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// Where the picture of an image part is to be found.
///
/// A prompt never opens it: pictures are handed over in the order of their parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ImageSource {
    /// A file's path, a `file:` or a `data:` URL, as the message gave it.
    Reference(String),
    /// The message names none: the caller supplies the picture.
    Supplied,
}

impl ImageSource {
    /// Reads the picture: a `data:` URL, a `file:` URL or a path, a relative one from `base`.
    ///
    /// # Errors
    /// As [`Image::open_within`] and [`Image::from_base64_within`]; [`Error::RemoteImage`] for a URL of another kind, since
    /// nothing is fetched; [`Error::SuppliedImage`] when the part names no picture.
    pub fn open(&self, base: &Path, limits: &Limits) -> Result<Image> {
        let Self::Reference(reference) = self else { return Err(Error::SuppliedImage) };
        if reference.starts_with("data:") {
            return Image::from_base64_within(reference, limits);
        }
        let path = reference.strip_prefix("file://").unwrap_or(reference);
        match path.split_once("://") {
            Some((scheme, _)) => Err(Error::RemoteImage { scheme: scheme.chars().take(16).collect() }),
            None => Image::open_within(base.join(path), limits),
        }
    }
}

/// One part of a message's content; parts keep the order in which they were sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// Text, taken literally.
    Text(String),
    /// One picture.
    Image(ImageSource),
}

/// A message's content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// One text.
    Text(String),
    /// Texts and pictures in order.
    Parts(Vec<Part>),
}

/// The function that a tool call names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The function's name.
    pub name: String,
    /// Its arguments; a JSON text that holds an object is taken as that object.
    #[serde(default, deserialize_with = "arguments", skip_serializing_if = "Value::is_null")]
    pub arguments: Value,
}

/// A call that the model asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawToolCall")]
pub struct ToolCall {
    /// The call's identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function`, where the client says it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The function and its arguments.
    pub function: FunctionCall,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "RawMessage")]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; tool calls may come without.
    pub content: Option<Content>,
    /// The thoughts before an assistant's answer (also read from `thinking` and `reasoning`).
    pub reasoning_content: Option<String>,
    /// The calls that an assistant asked for.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Further keys, handed to the template as they are; null ones are dropped.
    pub extra: Map<String, Value>,
}

/// A conversation and what the model may call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Request {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// JSON schemas of the tools.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// Further variables for the template.
    #[serde(default)]
    pub chat_template_kwargs: Map<String, Value>,
}

impl Request {
    /// A request of messages only.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Reads a request object (`messages`, `tools`) or a bare array of messages.
    ///
    /// # Errors
    /// [`Error::MessagesJson`] when the text is neither.
    pub fn from_json(text: &str) -> Result<Self> {
        let is_array = text.trim_start().starts_with('[');
        let parsed =
            if is_array { serde_json::from_str(text).map(Self::new) } else { serde_json::from_str(text) };
        parsed.map_err(|source| Error::MessagesJson { source })
    }

    /// The sources of all image parts, in the order sent.
    pub fn image_sources(&self) -> impl Iterator<Item = &ImageSource> {
        self.messages.iter().flat_map(Message::image_sources)
    }
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::with_content(role, Content::Text(text.into()))
    }

    /// A message of several parts.
    pub fn parts(role: Role, parts: Vec<Part>) -> Self {
        Self::with_content(role, Content::Parts(parts))
    }

    /// A user's turn: `images` pictures, then the text.
    ///
    /// Without pictures the content is plain text, as clients send it.
    pub fn user(images: usize, text: impl Into<String>) -> Self {
        if images == 0 {
            return Self::text(Role::User, text);
        }
        let mut parts = vec![Part::Image(ImageSource::Supplied); images];
        parts.push(Part::Text(text.into()));
        Self::parts(Role::User, parts)
    }

    /// The sources of this message's image parts, in order.
    pub fn image_sources(&self) -> impl Iterator<Item = &ImageSource> {
        let parts = match &self.content {
            Some(Content::Parts(parts)) => parts.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::Image(source) => Some(source),
            Part::Text(_) => None,
        })
    }

    fn with_content(role: Role, content: Content) -> Self {
        Self { role, content: Some(content), reasoning_content: None, tool_calls: None, extra: Map::new() }
    }

    /// What the chat template sees: every image part is `{"type": "image"}`, absent keys are absent, and the reasoning
    /// stands under both of its names.
    pub(crate) fn template_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("role".into(), json!(self.role));
        match &self.content {
            Some(Content::Text(text)) => {
                map.insert("content".into(), json!(text));
            }
            Some(Content::Parts(parts)) => {
                let parts = parts.iter().map(|part| match part {
                    Part::Text(text) => json!({"type": "text", "text": text}),
                    Part::Image(_) => json!({"type": "image"}),
                });
                map.insert("content".into(), parts.collect());
            }
            None => {}
        }
        if let Some(reasoning) = &self.reasoning_content {
            map.insert("thinking".into(), json!(reasoning));
            map.insert("reasoning_content".into(), json!(reasoning));
        }
        if let Some(calls) = &self.tool_calls {
            map.insert("tool_calls".into(), json!(calls));
        }
        for (key, value) in &self.extra {
            if !value.is_null() {
                map.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        Value::Object(map)
    }
}

/// OpenAI clients send a call's arguments as JSON text, templates expect the object.
fn arguments<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Value, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(match &value {
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(object @ Value::Object(_)) => object,
            _ => value,
        },
        _ => value,
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawToolCall {
    Wrapped {
        #[serde(default)]
        id: Option<String>,
        #[serde(default, rename = "type")]
        kind: Option<String>,
        function: FunctionCall,
    },
    Bare(FunctionCall),
}

impl From<RawToolCall> for ToolCall {
    fn from(raw: RawToolCall) -> Self {
        match raw {
            RawToolCall::Wrapped { id, kind, function } => Self { id, kind, function },
            RawToolCall::Bare(function) => Self { id: None, kind: None, function },
        }
    }
}

#[derive(Deserialize)]
struct RawMessage {
    role: Role,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl From<RawMessage> for Message {
    fn from(raw: RawMessage) -> Self {
        Self {
            role: raw.role,
            content: raw.content,
            reasoning_content: raw.reasoning_content.or(raw.thinking).or(raw.reasoning),
            tool_calls: raw.tool_calls,
            extra: raw.extra,
        }
    }
}

impl Serialize for Message {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut value = self.template_value();
        if let Some(map) = value.as_object_mut() {
            map.remove("thinking");
            if let Some(content) = &self.content {
                map.insert("content".into(), json!(content));
            }
        }
        value.serialize(serializer)
    }
}

impl Serialize for Part {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let value = match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image(ImageSource::Supplied) => json!({"type": "image"}),
            Self::Image(ImageSource::Reference(url)) => {
                json!({"type": "image_url", "image_url": {"url": url}})
            }
        };
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        let map = Map::deserialize(deserializer)?;
        let kind = map.get("type").and_then(Value::as_str);
        let is_image = matches!(kind, Some("image" | "image_url" | "input_image"))
            || (kind.is_none() && (map.contains_key("image") || map.contains_key("image_url")));
        if is_image {
            let source =
                ["image_url", "image", "url", "path"].iter().find_map(|key| map.get(*key)).map(|value| {
                    let text = value.as_str().or_else(|| value.get("url").and_then(Value::as_str));
                    text.map(|text| ImageSource::Reference(text.to_owned()))
                });
            return match source {
                None => Ok(Self::Image(ImageSource::Supplied)),
                Some(Some(source)) => Ok(Self::Image(source)),
                Some(None) => {
                    Err(D::Error::custom("an image part's source must be text or an object with `url`"))
                }
            };
        }
        match (kind, map.get("text").and_then(Value::as_str)) {
            (Some("text" | "input_text" | "output_text") | None, Some(text)) => {
                Ok(Self::Text(text.to_owned()))
            }
            (Some("text" | "input_text" | "output_text"), None) => Err(D::Error::missing_field("text")),
            (Some(other), _) => Err(D::Error::unknown_variant(other, &["text", "image", "image_url"])),
            (None, None) => Err(D::Error::missing_field("type")),
        }
    }
}

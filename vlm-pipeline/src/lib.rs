#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod chat;
mod control;
mod error;
mod files;
mod generate;
mod image;
mod message;
mod options;
mod packing;
mod pipeline;
mod preprocessor_config;
mod prompt;
mod reasoning;
mod resize;
mod session;
mod slicing;
mod stop;
mod stream;
mod template;
mod tokenizer;

pub use self::image::{Image, Limits};
pub use answer::Answer;
pub use chat::Chat;
pub use error::{Cause, Error, Origin, Result};
pub use generate::{Cancel, GenerateOptions, Generation, Timings};
pub use message::{Content, FunctionCall, ImageSource, Message, Part, Request, Role, ToolCall};
pub use options::{Options, ProgressCallback};
pub use packing::{Preprocessed, Slice, preprocess};
pub use pipeline::{EncodedImage, Pipeline, VlmBackend};
pub use preprocessor_config::PreprocessorConfig;
pub use prompt::{Prompt, PromptBuilder};
pub use reasoning::{ReasoningSplitter, ReasoningStart, Split, THINK_CLOSE, THINK_OPEN};
pub use resize::resize_bicubic;
pub use session::Session;
pub use slicing::{DownsampleMode, Grid, Plan, Size};
pub use stop::{FinishReason, StopIds};
pub use stream::TextStream;
pub use template::{ChatTemplate, DEFAULT_TEMPLATE, RenderOptions, Thinking};
pub use tokenizer::Tokenizer;

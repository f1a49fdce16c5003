//! A conversation at the terminal, with pictures; it also answers lines from a pipe.
//!
//! `/image FILE` shows a picture with the next question, `/reset` begins anew, `/think on|off` lets the model think first (its
//! thoughts go to stderr), `/quit` or the end of input ends it. At a terminal an error is told and the conversation goes
//! on; from a pipe it ends the program.
//!
//! ```sh
//! cargo run --release -p examples --example chat
//! printf '/image examples/assets/tiny/sample_hello.png\nWhat does the text say?\n' | cargo run --release -p examples --example chat
//! ```

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use examples::{DeviceOptions, GenerationOptions, ModelOptions, Program, stream};
use vlm_pipeline::{Chat, Image, Options, Thinking, VlmBackend};

/// Holds a conversation.
#[derive(Parser)]
struct Args {
    /// Instructions before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    #[command(flatten)]
    generation: GenerationOptions,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    device: DeviceOptions,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| args.device.run(args))
}

impl Program for Args {
    fn run<B: VlmBackend>(self, device: &B) -> Result<()> {
        let options = Options { context_length: self.generation.context_length, ..Options::default() };
        let mut vlm = self.model.load(device, options)?;
        let chat = vlm.chat().thinking(self.generation.thinking.into());
        let mut chat = chat.generate(self.generation.generate());
        if let Some(system) = self.system {
            chat = chat.system(system);
        }
        let mut turns = Turns { chat, images: Vec::new() };
        let terminal = io::stdin().is_terminal();
        let mut lines = io::stdin().lock().lines();
        loop {
            if terminal {
                write!(io::stderr(), "> ")?;
            }
            let Some(line) = lines.next() else { return Ok(()) };
            match turns.take(line?.trim()) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if terminal && !error.is::<io::Error>() => {
                    writeln!(io::stderr(), "error: {}", examples::line(&error))?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A conversation, and the pictures that wait for the next question.
struct Turns<'p, B: VlmBackend> {
    chat: Chat<'p, B>,
    images: Vec<Image>,
}

impl<B: VlmBackend> Turns<'_, B> {
    /// Does what a line says; false when it says to end.
    fn take(&mut self, line: &str) -> Result<bool> {
        let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (command, argument.trim()) {
            ("", _) => {}
            ("/quit", "") => return Ok(false),
            ("/reset", "") => {
                self.images.clear();
                self.chat.clear();
            }
            ("/think", "on") => self.chat.set_thinking(Thinking::On),
            ("/think", "off") => self.chat.set_thinking(Thinking::Off),
            ("/image", path) if !path.is_empty() => self.images.push(Image::open(path)?),
            (command, _) if command.starts_with('/') => {
                bail!("{line}: expected /image FILE, /reset, /think on|off, /quit or a question");
            }
            _ => {
                let answer = self.chat.ask(&self.images, line)?;
                // They are part of the conversation now.
                self.images.clear();
                stream(answer)?;
            }
        }
        Ok(true)
    }
}

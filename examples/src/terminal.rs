//! What goes to the terminal: answers to stdout, thoughts and remarks to stderr.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::Result;
use serde_json::Value;
use vlm_pipeline::{Answer, VlmBackend};

/// Writes a line to stdout; unlike `println!` it reports an output that was closed.
///
/// # Errors
/// When stdout cannot be written.
pub fn print(line: impl Display) -> Result<()> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// Writes one JSON object on one line of stdout.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_json(value: &Value) -> Result<()> {
    print(value)
}

/// Writes an answer piece by piece as it is generated, its thoughts to stderr, and a line break after each.
///
/// # Errors
/// When a step fails, or stdout cannot be written.
pub fn stream<B: VlmBackend>(mut answer: Answer<'_, B>) -> Result<()> {
    let (mut stdout, mut stderr) = (io::stdout(), io::stderr());
    let mut thinking = false;
    while let Some(split) = answer.next_split() {
        let split = split?;
        if !split.reasoning.is_empty() {
            thinking = true;
            write!(stderr, "{}", split.reasoning)?;
        }
        if !split.content.is_empty() {
            if thinking {
                thinking = false;
                writeln!(stderr)?;
            }
            write!(stdout, "{}", split.content)?;
            stdout.flush()?;
        }
    }
    Ok(writeln!(stdout)?)
}

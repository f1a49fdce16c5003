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

/// Writes rows of cells, the first row over a line, each column as wide as its widest cell.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_table<const N: usize>(rows: &[[String; N]]) -> Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        print(cells.join("  ").trim_end())?;
        if at == 0 {
            print("-".repeat(widths.iter().sum::<usize>() + 2 * N.saturating_sub(1)))?;
        }
    }
    Ok(())
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

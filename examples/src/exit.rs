//! How an example ends.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Error, Result};

/// Runs a program: an error becomes one line on stderr with its causes, and the exit status 1.
///
/// A reader that closes our output early (`| head`) ends the program, and is no error.
pub fn exit(program: impl FnOnce() -> Result<()>) -> ExitCode {
    match program() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output_was_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody can be told when stderr is closed too.
            let _ = writeln!(io::stderr(), "error: {}", line(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes in one line; a cause that the text before it names already is left out.
pub fn line(error: &Error) -> String {
    error.chain().map(|cause| cause.to_string().replace('\n', " ")).fold(String::new(), |line, cause| {
        if line.is_empty() {
            cause
        } else if line.contains(&cause) {
            line
        } else {
            format!("{line}: {cause}")
        }
    })
}

fn output_was_closed(error: &Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

//! Running an example and looking at what came of it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// An example with its arguments.
pub(crate) struct Program {
    command: Command,
    input: String,
}

/// What a finished example left.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `cargo test -p examples` builds the examples beside the tests: target/PROFILE/examples/NAME and .../deps/TEST.
pub(crate) fn path(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.exists(), "{} is not built: run `cargo test -p examples`", path.display());
    path
}

impl Program {
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Command::new(path(name));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, input: String::new() }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Arguments parted by white space.
    pub(crate) fn args(mut self, arguments: &str) -> Self {
        self.command.args(arguments.split_whitespace());
        self
    }

    pub(crate) fn option(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.arg(name).arg(value)
    }

    pub(crate) fn input(mut self, text: &str) -> Self {
        text.clone_into(&mut self.input);
        self
    }

    #[track_caller]
    pub(crate) fn run(mut self) -> Outcome {
        let mut child = self.command.spawn().unwrap();
        // A program that never reads may be gone by now.
        let _ = child.stdin.take().unwrap().write_all(self.input.as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Runs it to success: nothing on stderr, and what it said.
    #[track_caller]
    pub(crate) fn succeed(self) -> String {
        let outcome = self.run();
        assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""), "{}", outcome.stdout);
        outcome.stdout
    }

    /// The one JSON object that it prints.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let value: Value = serde_json::from_str(&self.arg("--json").succeed()).unwrap();
        assert!(value.is_object());
        value
    }

    /// Runs it to a failure with this status: one line on stderr that holds these texts (more lines for wrong arguments, from
    /// the argument parser), and nothing on stdout.
    #[track_caller]
    pub(crate) fn fail(self, status: i32, texts: &[&str]) {
        let Outcome { status: actual, stdout, stderr } = self.run();
        assert_eq!((actual, stdout.as_str()), (Some(status), ""), "{stderr}");
        assert!(stderr.starts_with("error: "), "{stderr}");
        assert!(status == 2 || stderr.lines().count() == 1, "{stderr}");
        for text in texts {
            assert!(stderr.contains(text), "{text:?} is not in: {stderr}");
        }
        assert!(!stderr.contains("panicked"), "{stderr}");
    }
}

/// Something of the bundled checkpoint's folder.
pub(crate) fn tiny(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tiny").join(name)
}

/// Something of the repository.
pub(crate) fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// An empty folder of a test's own, in the build folder.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

//! A bar while large files are read or written.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of bytes on stderr, shown on a terminal only and gone when it is dropped.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar behind a word such as `loading`.
    pub fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new(0).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} [{wide_bar}] {bytes}/{total_bytes} {eta}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self(bar)
    }

    /// Shows how many of all bytes are done.
    pub fn set(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
    }

    /// The same, for whoever does the work.
    pub fn callback(&self) -> impl Fn(u64, u64) + Send + Sync + 'static {
        let bar = Self(self.0.clone());
        move |done, all| bar.set(done, all)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

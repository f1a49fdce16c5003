//! One question a file lives here.

//! How much a picture's patches are condensed.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// How many patches become one output vector (with one round of the projector).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DownsampleMode {
    /// 16: the window-attention merger and the projector.
    #[default]
    X16,
    /// 4: the projector alone.
    X4,
}

impl DownsampleMode {
    /// What the encoder divides each side of the grid by.
    pub(crate) fn window(self) -> usize {
        match self {
            Self::X16 => 2,
            Self::X4 => 1,
        }
    }
}

impl fmt::Display for DownsampleMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X16 => "16x",
            Self::X4 => "4x",
        })
    }
}

impl FromStr for DownsampleMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "16x" => Ok(Self::X16),
            "4x" => Ok(Self::X4),
            _ => {
                let expected = "16x or 4x".to_owned();
                Err(Error::InvalidKey { key: "downsample_mode", value: name.to_owned(), expected })
            }
        }
    }
}

//! Reading single keys, with errors that name them.

use std::ops::RangeInclusive;

use fermi_blas::Activation;
use serde_json::{Map, Value};

use super::DownsampleMode;
use crate::{Error, Result};

/// An object of the config. Keys are given with those above them; the part behind the last dot is looked up.
pub(super) struct Keys<'a>(&'a Map<String, Value>);

pub(super) fn describe(valid: &RangeInclusive<usize>) -> String {
    format!("an integer from {} to {}", valid.start(), valid.end())
}

impl<'a> Keys<'a> {
    pub(super) fn top(value: &'a Value) -> Result<Self> {
        let expected = || "an object".to_owned();
        let invalid = || Error::InvalidKey { key: "top level", value: brief(value), expected: expected() };
        value.as_object().map(Self).ok_or_else(invalid)
    }

    pub(super) fn section(&self, key: &'static str) -> Result<Self> {
        let value = self.get(key).ok_or(Error::MissingKey { key })?;
        value.as_object().map(Self).ok_or_else(|| self.invalid(key, "an object"))
    }

    pub(super) fn size(
        &self,
        key: &'static str,
        default: usize,
        valid: RangeInclusive<usize>,
    ) -> Result<usize> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        size.filter(|size| valid.contains(size)).ok_or_else(|| self.invalid(key, &describe(&valid)))
    }

    pub(super) fn positive(&self, key: &'static str, default: f32) -> Result<f32> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let number = value.as_f64().map(|number| number as f32);
        number
            .filter(|number| number.is_finite() && *number > 0.0)
            .ok_or_else(|| self.invalid(key, "a positive number"))
    }

    /// Two sizes from 1 to 4; 2 x 2 if left out.
    pub(super) fn kernel(&self, key: &'static str) -> Result<[usize; 2]> {
        let Some(value) = self.get(key) else { return Ok([2, 2]) };
        let size =
            |value: &Value| value.as_u64().filter(|size| (1..=4).contains(size)).map(|size| size as usize);
        match value.as_array().map(Vec::as_slice) {
            Some([rows, columns]) => size(rows).zip(size(columns)).map(|(rows, columns)| [rows, columns]),
            _ => None,
        }
        .ok_or_else(|| self.invalid(key, "two integers from 1 to 4"))
    }

    pub(super) fn activation(&self, key: &'static str) -> Result<Activation> {
        match self.get(key).map_or(Some("gelu_pytorch_tanh"), Value::as_str) {
            Some("gelu_pytorch_tanh" | "gelu_new") => Ok(Activation::GeluTanh),
            Some("gelu") => Ok(Activation::GeluErf),
            Some("silu" | "swish") => Ok(Activation::Silu),
            _ => Err(self.invalid(key, "gelu_pytorch_tanh, gelu_new, gelu, silu or swish")),
        }
    }

    pub(super) fn mode(&self, key: &'static str) -> Result<DownsampleMode> {
        let Some(value) = self.get(key) else { return Ok(DownsampleMode::default()) };
        let mode = value.as_str().and_then(|name| name.parse().ok());
        mode.ok_or_else(|| self.invalid(key, "\"16x\" or \"4x\""))
    }

    /// The error for a key whose value cannot be used.
    pub(super) fn invalid(&self, key: &'static str, expected: &str) -> Error {
        let value = self.get(key).map_or_else(|| "left out".to_owned(), brief);
        Error::InvalidKey { key, value, expected: expected.to_owned() }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key.rsplit('.').next().unwrap_or(key))
    }
}

/// A value as it is shown in an error: whole objects are not.
fn brief(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(values) if values.len() > 4 => format!("a list of {}", values.len()),
        Value::String(text) if text.len() > 80 => format!("a text of {} bytes", text.len()),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(brief).collect();
            format!("[{}]", values.join(", "))
        }
        value => value.to_string(),
    }
}

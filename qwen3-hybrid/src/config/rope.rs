//! The facts of rotary positions, which stand in one of two places or in both.

use super::parse::Section;
use crate::{Error, Result};

/// What the reference takes when no factor is given.
const DEFAULT_FACTOR: f64 = 0.25;

pub(super) struct Rope {
    pub(super) theta: f64,
    pub(super) partial_rotary_factor: f64,
}

impl Rope {
    pub(super) fn read(text: &Section<'_>) -> Result<Self> {
        let inner = [text.object("rope_parameters")?, text.object("rope_scaling")?];
        for section in inner.iter().flatten() {
            for key in ["rope_type", "type"] {
                match section.text(key)? {
                    None | Some("default") => {}
                    Some(other) => {
                        return Err(Error::Unsupported { key: section.key(key), value: other.to_owned() });
                    }
                }
            }
        }
        let [parameters, scaling] = inner;
        let places = [parameters, scaling, Some(*text)];
        let theta = agreed(&places, "rope_theta")?
            .ok_or_else(|| Error::MissingKey { key: "rope_theta".to_owned() })?;
        let partial_rotary_factor = agreed(&places, "partial_rotary_factor")?.unwrap_or(DEFAULT_FACTOR);
        Ok(Self { theta, partial_rotary_factor })
    }
}

/// A number that must be the same wherever it is given.
fn agreed(places: &[Option<Section<'_>>], key: &'static str) -> Result<Option<f64>> {
    let mut found: Option<f64> = None;
    for section in places.iter().flatten() {
        let Some(value) = section.number(key)? else { continue };
        match found {
            Some(first) if first != value => return Err(Error::RopeConflict { key, first, second: value }),
            _ => found = Some(value),
        }
    }
    Ok(found)
}

//! One question a file lives here; what the questions to a GPU share stands in `card` (feature `cuda`).

pub mod scan_layer;

#[cfg(any(feature = "cuda", feature = "emulated"))]
pub mod kernels;

#[cfg(feature = "cuda")]
pub mod card;

/// Fails unless every value is within `share` of the largest expected one.
///
/// # Errors
/// With the largest difference.
pub fn close(what: &str, values: &[f32], expected: &[f32], share: f32) -> Result<(), String> {
    let most = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    let within = |(a, b): (&f32, &f32)| (a - b).abs() <= share * most;
    match values.iter().zip(expected).position(|pair| !within(pair)) {
        None if values.len() == expected.len() => Ok(()),
        None => Err(format!("{what}: {} values, not {}", values.len(), expected.len())),
        Some(at) => {
            Err(format!("{what}: value {at} is {}, not {}, of at most {most}", values[at], expected[at]))
        }
    }
}

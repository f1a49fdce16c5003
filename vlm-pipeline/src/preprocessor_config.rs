//! The image settings of a checkpoint, `preprocessor_config.json`.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::slicing::DownsampleMode;

/// How pictures become patches. Fields are the keys of `preprocessor_config.json`; a key that is missing or null takes
/// the reference's default, and keys that do not concern pictures are ignored.
///
/// The checkpoint's own file names the torchvision processor; this crate computes what the PIL one does, which differs
/// from it by up to 6 levels of 255 in a pixel and agrees on every size.
///
/// ```
/// # fn main() -> vlm_pipeline::Result<()> {
/// use vlm_pipeline::PreprocessorConfig;
///
/// let config = PreprocessorConfig::from_json(r#"{"max_slice_nums": 36}"#)?;
/// assert_eq!((config.max_slice_nums, config.scale_resolution, config.patch_size), (36, 448, 14));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PreprocessorConfig {
    /// The most slices a picture is cut into, the overview not counted. Default 9; 0 and 1 never cut.
    pub max_slice_nums: u32,
    /// The side of the square whose area a slice fills. Default 448.
    pub scale_resolution: u32,
    /// The side of a patch. Default 14.
    pub patch_size: u32,
    /// Whether large pictures are cut at all. Default true.
    pub slice_mode: bool,
    /// Whether the prompt numbers its pictures. Default true.
    pub use_image_id: bool,
    /// How many patches become one token. Default 16x.
    pub downsample_mode: DownsampleMode,
    /// Whether bytes are multiplied by `rescale_factor`. Default true.
    pub do_rescale: bool,
    /// What bytes are multiplied by. Default 1/255.
    pub rescale_factor: f64,
    /// Whether `image_mean` is subtracted and the rest divided by `image_std`. Default true.
    pub do_normalize: bool,
    /// Mean of red, green and blue. Default 0.5 each.
    pub image_mean: [f64; 3],
    /// Deviation of red, green and blue. Default 0.5 each.
    pub image_std: [f64; 3],
}

impl Default for PreprocessorConfig {
    fn default() -> Self {
        Self {
            max_slice_nums: 9,
            scale_resolution: 448,
            patch_size: 14,
            slice_mode: true,
            use_image_id: true,
            downsample_mode: DownsampleMode::X16,
            do_rescale: true,
            rescale_factor: 1.0 / 255.0,
            do_normalize: true,
            image_mean: [0.5; 3],
            image_std: [0.5; 3],
        }
    }
}

impl PreprocessorConfig {
    /// Reads `preprocessor_config.json` of a checkpoint's directory; the defaults where there is none.
    ///
    /// # Errors
    /// [`Error::ReadFile`]; [`Error::PreprocessorJson`] and [`Error::PreprocessorValue`] as [`Self::from_json`].
    pub fn from_dir(dir: impl AsRef<Path>) -> Result<Self> {
        let path = dir.as_ref().join("preprocessor_config.json");
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::from_json(&text),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(Error::ReadFile { path, source }),
        }
    }

    /// Checks the integers again, since a caller may set them without a file.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        let sizes = [
            (MAX_SLICE_NUMS, self.max_slice_nums),
            (SCALE_RESOLUTION, self.scale_resolution),
            (PATCH_SIZE, self.patch_size),
        ];
        for (IntKey(key, range, expected), value) in sizes {
            if !range.contains(&value) {
                return Err(Error::PreprocessorValue { key, value: value.to_string(), expected });
            }
        }
        Ok(())
    }

    /// Reads the settings from JSON text.
    ///
    /// # Errors
    /// [`Error::PreprocessorJson`] where the text is not a JSON object, [`Error::PreprocessorValue`] with the key where a
    /// value is of the wrong type, out of range, or asks for what is not computed here (another filter than bicubic, no
    /// resizing).
    pub fn from_json(text: &str) -> Result<Self> {
        let keys: Map<String, Value> =
            serde_json::from_str(text).map_err(|source| Error::PreprocessorJson { source })?;
        let keys = Keys(&keys);
        let default = Self::default();
        keys.only("do_resize", &[true.into()], "true: sizes that are no multiple of a patch cannot be cut")?;
        keys.only("resample", &[3.into(), "bicubic".into()], "3 (bicubic)")?;
        Ok(Self {
            max_slice_nums: keys.int(&MAX_SLICE_NUMS, default.max_slice_nums)?,
            scale_resolution: keys.int(&SCALE_RESOLUTION, default.scale_resolution)?,
            patch_size: keys.int(&PATCH_SIZE, default.patch_size)?,
            slice_mode: keys.flag("slice_mode", default.slice_mode)?,
            use_image_id: keys.flag("use_image_id", default.use_image_id)?,
            downsample_mode: keys.mode("downsample_mode", default.downsample_mode)?,
            do_rescale: keys.flag("do_rescale", default.do_rescale)?,
            rescale_factor: keys.number("rescale_factor", default.rescale_factor)?,
            do_normalize: keys.flag("do_normalize", default.do_normalize)?,
            image_mean: keys.channels("image_mean", |_| true, "one or three numbers", default.image_mean)?,
            image_std: keys.channels(
                "image_std",
                |std| std > 0.0,
                "one or three positive numbers",
                default.image_std,
            )?,
        })
    }
}

/// An integer setting: its key, its range, and the range in words.
struct IntKey(&'static str, RangeInclusive<u32>, &'static str);

// the search for a grid takes time in proportion to the slices
const MAX_SLICE_NUMS: IntKey = IntKey("max_slice_nums", 0..=1024, "a whole number from 0 to 1024");
const SCALE_RESOLUTION: IntKey = IntKey("scale_resolution", 1..=8192, "a whole number from 1 to 8192");
const PATCH_SIZE: IntKey = IntKey("patch_size", 1..=1024, "a whole number from 1 to 1024");

/// The file's object, read key by key so that an error can name the key.
struct Keys<'a>(&'a Map<String, Value>);

impl Keys<'_> {
    /// The value of a key through `read`, the default where it is missing or null.
    fn get<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        default: T,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<T> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => read(value).ok_or_else(|| Error::PreprocessorValue {
                key,
                value: value.to_string(),
                expected,
            }),
        }
    }

    fn flag(&self, key: &'static str, default: bool) -> Result<bool> {
        self.get(key, "true or false", default, Value::as_bool)
    }

    fn int(&self, IntKey(key, range, expected): &IntKey, default: u32) -> Result<u32> {
        let read = |value: &Value| u32::try_from(value.as_u64()?).ok().filter(|n| range.contains(n));
        self.get(key, expected, default, read)
    }

    fn number(&self, key: &'static str, default: f64) -> Result<f64> {
        self.get(key, "a number", default, finite)
    }

    fn channels(
        &self,
        key: &'static str,
        valid: impl Fn(f64) -> bool,
        expected: &'static str,
        default: [f64; 3],
    ) -> Result<[f64; 3]> {
        let read = |value: &Value| {
            let channels: [f64; 3] = match value {
                Value::Array(list) => {
                    let list: Vec<f64> = list.iter().map(finite).collect::<Option<_>>()?;
                    list.try_into().ok()?
                }
                one => [finite(one)?; 3],
            };
            channels.iter().all(|&channel| valid(channel)).then_some(channels)
        };
        self.get(key, expected, default, read)
    }

    fn mode(&self, key: &'static str, default: DownsampleMode) -> Result<DownsampleMode> {
        self.get(key, "\"16x\" or \"4x\"", default, |value| value.as_str()?.parse().ok())
    }

    /// Refuses every value of a key but those that are computed here.
    fn only(&self, key: &'static str, allowed: &[Value], expected: &'static str) -> Result<()> {
        self.get(key, expected, (), |value| allowed.contains(value).then_some(()))
    }
}

/// A number that float32 can hold.
fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| (*number as f32).is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_file_gives_the_defaults() {
        let text = r#"{"image_processor_type": "MiniCPMV4_6ImageProcessor", "processor_class": "MiniCPMV4_6Processor",
            "max_slice_nums": 9, "scale_resolution": 448, "patch_size": 14, "use_image_id": true, "slice_mode": true,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}"#;
        assert_eq!(PreprocessorConfig::from_json(text).unwrap(), PreprocessorConfig::default());
        assert_eq!(PreprocessorConfig::from_json("{}").unwrap(), PreprocessorConfig::default());
    }

    #[test]
    fn every_key_is_read() {
        let text = r#"{"max_slice_nums": 4, "scale_resolution": 224, "patch_size": 16, "use_image_id": false,
            "slice_mode": false, "downsample_mode": "4x", "do_rescale": false, "rescale_factor": 0.5, "resample": 3,
            "do_resize": true, "do_normalize": false, "image_mean": 0.25, "image_std": [1, 2, 3.5]}"#;
        let expected = PreprocessorConfig {
            max_slice_nums: 4,
            scale_resolution: 224,
            patch_size: 16,
            slice_mode: false,
            use_image_id: false,
            downsample_mode: DownsampleMode::X4,
            do_rescale: false,
            rescale_factor: 0.5,
            do_normalize: false,
            image_mean: [0.25; 3],
            image_std: [1.0, 2.0, 3.5],
        };
        assert_eq!(PreprocessorConfig::from_json(text).unwrap(), expected);
    }

    #[test]
    fn null_is_missing() {
        let text =
            r#"{"max_slice_nums": null, "image_mean": null, "downsample_mode": null, "resample": null}"#;
        assert_eq!(PreprocessorConfig::from_json(text).unwrap(), PreprocessorConfig::default());
    }

    #[test]
    fn a_broken_value_is_named() {
        let broken = [
            ("max_slice_nums", "-1"),
            ("max_slice_nums", "1.5"),
            ("max_slice_nums", "1e12"),
            ("scale_resolution", "0"),
            ("scale_resolution", "\"448\""),
            ("patch_size", "0"),
            ("patch_size", "[14]"),
            ("slice_mode", "1"),
            ("use_image_id", "\"yes\""),
            ("downsample_mode", "\"8x\""),
            ("downsample_mode", "16"),
            ("rescale_factor", "\"1/255\""),
            ("rescale_factor", "1e300"),
            ("image_mean", "[0.5, 0.5]"),
            ("image_mean", "[0.5, 0.5, null]"),
            ("image_std", "[0.5, 0.5, 0.0]"),
            ("image_std", "0"),
            ("do_resize", "false"),
            ("resample", "2"),
        ];
        for (name, json) in broken {
            match PreprocessorConfig::from_json(&format!("{{\"{name}\": {json}}}")) {
                Err(Error::PreprocessorValue { key, .. }) => assert_eq!(key, name),
                other => panic!("{name} = {json}: {other:?}"),
            }
        }
        for text in ["", "[]", "{", "nonsense", "3"] {
            assert!(
                matches!(PreprocessorConfig::from_json(text), Err(Error::PreprocessorJson { .. })),
                "{text}"
            );
        }
    }
}

//! Reading a checkpoint's folder.

use std::path::Path;
use std::sync::Arc;

use fermi_blas::{Checkpoint, MemoryPlan};
use qwen3_hybrid::Backbone;
use serde_json::Value;
use siglip2_tower::Tower;

use super::{Pipeline, VlmBackend};
use crate::files::read_json;
use crate::options::Options;
use crate::preprocessor_config::PreprocessorConfig;
use crate::prompt::PromptBuilder;
use crate::slicing::DownsampleMode;
use crate::stop::StopIds;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::{Error, Result};

/// What the small files of a checkpoint say.
struct Configs {
    backbone: qwen3_hybrid::Config,
    tower: Option<siglip2_tower::Config>,
    preprocessor: PreprocessorConfig,
    image_token: Option<u32>,
}

impl Configs {
    fn read(dir: &Path, options: &Options) -> Result<Self> {
        let path = dir.join("config.json");
        let json = read_json(&path)?;
        let tower = json.get("vision_config").map(|_| siglip2_tower::Config::read(dir)).transpose()?;
        let mut preprocessor = PreprocessorConfig::from_dir(dir)?;
        // One mode for prompt and tower, whatever the two files say.
        let mode = tower.as_ref().map(|tower| match tower.downsample_mode {
            siglip2_tower::DownsampleMode::X16 => DownsampleMode::X16,
            siglip2_tower::DownsampleMode::X4 => DownsampleMode::X4,
        });
        if let Some(mode) = options.downsample_mode.or(mode) {
            preprocessor.downsample_mode = mode;
        }
        if let Some(most) = options.max_slices {
            preprocessor.max_slice_nums = most;
        }
        preprocessor.check_sizes()?;
        let image_token = match &json["image_token_id"] {
            Value::Null => None,
            value => {
                let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
                Some(id.ok_or_else(|| Error::ImageTokenId { path, value: value.to_string() })?)
            }
        };
        Ok(Self { backbone: qwen3_hybrid::Config::open(dir)?, tower, preprocessor, image_token })
    }

    fn tower_options(&self, options: &Options) -> siglip2_tower::Options {
        let mode = match self.preprocessor.downsample_mode {
            DownsampleMode::X16 => siglip2_tower::DownsampleMode::X16,
            DownsampleMode::X4 => siglip2_tower::DownsampleMode::X4,
        };
        siglip2_tower::Options {
            max_patches: options.max_patches,
            attention_rows: options.attention_rows,
            downsample_mode: Some(mode),
            ..Default::default()
        }
    }
}

fn backbone_options(options: &Options) -> qwen3_hybrid::Options {
    qwen3_hybrid::Options::default()
        .precision(options.precision)
        .context_length(options.context_length)
        .prefill_chunk(options.prefill_chunk)
        .attention_rows(options.attention_rows)
}

impl<B: VlmBackend> Pipeline<B> {
    /// Loads a checkpoint's folder in Hugging Face layout, as it is published or exported to 8 bits.
    ///
    /// A folder without `vision_config` is a text model, one without `tokenizer.json` runs raw ids only.
    ///
    /// # Errors
    /// A file that is missing, cannot be read or contradicts another, named with the key or tensor at fault; a device
    /// without room.
    pub fn load(device: &B, path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let dir = path.as_ref();
        let configs = Configs::read(dir, &options)?;
        let tokenizer = if dir.join("tokenizer.json").exists() { Some(Tokenizer::load(dir)?) } else { None };
        let stop = Arc::new(StopIds::load(dir, tokenizer.as_ref())?);
        let prompt = tokenizer.map(|tokenizer| {
            let template = ChatTemplate::load(dir, &tokenizer)?;
            Ok::<_, Error>(PromptBuilder::new(tokenizer, template, configs.preprocessor.use_image_id))
        });
        let prompt = prompt.transpose()?;
        let image_token = image_token(&configs, prompt.as_ref())?;

        let mut checkpoint = Checkpoint::open(dir)?;
        if let Some(progress) = options.progress.clone() {
            checkpoint = checkpoint.with_progress(Box::new(move |read, all| progress(read, all)));
        }
        let tower_options = configs.tower_options(&options);
        let tower =
            configs.tower.as_ref().map(|tower| Tower::load(device, &checkpoint, tower, tower_options));
        let tower = tower.transpose()?;
        let backbone = Backbone::load(device, &checkpoint, &configs.backbone, backbone_options(&options))?;
        Ok(Self {
            device: device.clone(),
            options,
            prompt: prompt.map(Arc::new),
            preprocessor: configs.preprocessor,
            tower,
            backbone,
            stop,
            image_token,
        })
    }

    /// Bytes that a pipeline and one session will hold, told from the small files alone.
    ///
    /// # Errors
    /// As [`Pipeline::load`] for those files.
    pub fn memory_plan(device: &B, path: impl AsRef<Path>, options: &Options) -> Result<MemoryPlan> {
        let configs = Configs::read(path.as_ref(), options)?;
        let mut plan = Backbone::memory_plan(device, &configs.backbone, &backbone_options(options))?;
        if options.keep_prefix {
            plan.caches *= 2;
        }
        if let Some(tower) = &configs.tower {
            plan = plan + tower.memory_plan(&configs.tower_options(options))?;
        }
        Ok(plan)
    }
}

/// The image token by config.json and by the tokenizer, which must agree where a picture can come in.
fn image_token(configs: &Configs, prompt: Option<&PromptBuilder>) -> Result<Option<u32>> {
    let by_tokenizer = prompt.and_then(|prompt| prompt.image_pad().ok());
    match (configs.image_token, by_tokenizer) {
        (Some(config), Some(tokenizer)) if config != tokenizer && configs.tower.is_some() => {
            Err(Error::ImageTokenMismatch { config, tokenizer })
        }
        (config, tokenizer) => Ok(config.or(tokenizer)),
    }
}

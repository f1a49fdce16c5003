//! The crate's error type.

use std::fmt;
use std::path::PathBuf;

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// The cause of a fault found by another library, kept for `source()` without naming that library's types.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Where a picture or a setting came from, so that a message can name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// Bytes that a caller held in memory.
    Bytes,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Bytes => f.write_str("image bytes"),
        }
    }
}

/// Everything that can go wrong between a picture and an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A picture's file could not be read.
    #[error("{origin}: cannot be read: {source}")]
    ReadImage {
        /// The picture.
        origin: Origin,
        /// What the system said.
        source: std::io::Error,
    },
    /// A picture has no bytes at all.
    #[error("{origin}: empty, no image data")]
    EmptyImage {
        /// The picture.
        origin: Origin,
    },
    /// The first bytes belong to no image format that is read here.
    #[error("{origin}: not a PNG, JPEG, WebP, GIF, BMP or TIFF (it starts with {head:02x?})")]
    UnknownImageFormat {
        /// The picture.
        origin: Origin,
        /// Its first bytes, at most eight.
        head: Vec<u8>,
    },
    /// A picture's encoded form is longer than the limit.
    #[error("{origin}: longer than the limit of {limit} bytes")]
    ImageFileTooLong {
        /// The picture.
        origin: Origin,
        /// The limit in bytes ([`Limits::max_file_bytes`](crate::Limits::max_file_bytes)).
        limit: u64,
    },
    /// The header claims more pixels than the limits allow; nothing was decoded.
    #[error(
        "{origin}: claims {width}x{height} pixels, more than the limit of {max_pixels} ({max_side} a side)"
    )]
    ImageTooLarge {
        /// The picture.
        origin: Origin,
        /// Claimed width in pixels.
        width: u64,
        /// Claimed height in pixels.
        height: u64,
        /// The most pixels allowed.
        max_pixels: u64,
        /// The most pixels allowed along one side.
        max_side: u32,
    },
    /// The data ends before the picture does.
    #[error("{origin}: truncated {format}: {length} bytes, and the picture does not end within them")]
    TruncatedImage {
        /// The picture.
        origin: Origin,
        /// Its format.
        format: &'static str,
        /// How many bytes there are.
        length: usize,
    },
    /// A PNG chunk's checksum does not match its data.
    #[error(
        "{origin}: damaged PNG chunk {chunk:?} at byte {offset}: checksum {found:08x}, computed {computed:08x}"
    )]
    DamagedChunk {
        /// The picture.
        origin: Origin,
        /// The chunk's four-letter name, escaped where it is not text.
        chunk: String,
        /// Where the chunk begins in the file.
        offset: usize,
        /// The checksum in the file.
        found: u32,
        /// The checksum of the data that is there.
        computed: u32,
    },
    /// A TIFF's tag claims more values than the file, or any sane file, can hold.
    #[error("{origin}: TIFF tag {tag} claims {count} values")]
    TiffTag {
        /// The picture.
        origin: Origin,
        /// The tag's number.
        tag: u16,
        /// How many values it claims.
        count: u64,
    },
    /// A PNG's palette is no list of 1 to 256 colours.
    #[error("{origin}: PNG palette of {length} bytes, expected three for each of 1 to 256 colours")]
    PaletteLength {
        /// The picture.
        origin: Origin,
        /// How many bytes it has.
        length: usize,
    },
    /// The decoder of the picture's format failed in a way its authors did not foresee; nothing else is affected.
    #[error("{origin}: the decoder broke off on it")]
    DecoderPanicked {
        /// The picture.
        origin: Origin,
    },
    /// The decoder of the picture's format refused it.
    #[error("{origin}: cannot be decoded as {format}: {source}")]
    DecodeImage {
        /// The picture.
        origin: Origin,
        /// Its format.
        format: &'static str,
        /// What the decoder said.
        source: Cause,
    },
    /// Text that should hold a picture in base64 does not.
    #[error("image in base64: {source}")]
    Base64 {
        /// What the base64 decoder said.
        source: Cause,
    },
    /// A `data:` URL that does not hold base64.
    #[error("data URL with header {header:?}: expected `data:image/...;base64,`")]
    DataUrl {
        /// The part before the comma, at most 64 characters of it.
        header: String,
    },
    /// Raw pixels whose number does not fit the size given with them.
    #[error("{actual} RGB bytes for a picture of {width}x{height}: expected {expected}, and no empty side")]
    RgbLength {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes needed, `3 * width * height`.
        expected: u64,
        /// Bytes given.
        actual: usize,
    },
    /// A file of the checkpoint could not be read.
    #[error("{path}: cannot be read: {source}", path = .path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A picture of no pixels cannot be planned.
    #[error("a picture of {width}x{height} pixels has nothing to show")]
    EmptyPlan {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// A name of no downsample mode.
    #[error("downsample mode {found:?}: expected \"16x\" or \"4x\"")]
    UnknownDownsampleMode {
        /// The name given.
        found: String,
    },
    /// The image settings are not JSON.
    #[error("preprocessor_config.json: not JSON: {source}")]
    PreprocessorJson {
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// An image setting has a value that cannot be used.
    #[error("preprocessor_config.json: `{key}` is {value}, expected {expected}")]
    PreprocessorValue {
        /// The setting.
        key: &'static str,
        /// Its value as JSON.
        value: String,
        /// What would do.
        expected: &'static str,
    },
    /// A JSON file of the checkpoint is not JSON.
    #[error("{path}: not JSON: {source}", path = .path.display())]
    ReadJson {
        /// The file.
        path: PathBuf,
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// The tokenizer library refuses `tokenizer.json`.
    #[error("{path}: cannot be used: {source}", path = .path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What the library said.
        source: Cause,
    },
    /// The tokenizer library failed on a text.
    #[error("text cannot be encoded: {source}")]
    Encode {
        /// What the library said.
        source: Cause,
    },
    /// A control token that the model needs is not in the tokenizer.
    #[error("tokenizer.json: has no control token `{token}`")]
    MissingToken {
        /// The token.
        token: String,
    },
    /// An end token is no token id.
    #[error("{path}: `eos_token_id` holds {value}, expected token ids", path = .path.display())]
    StopId {
        /// The file.
        path: PathBuf,
        /// What stands there, as JSON.
        value: String,
    },
    /// A conversation is not one.
    #[error("messages: {source}")]
    MessagesJson {
        /// What the JSON reader said.
        source: serde_json::Error,
    },
    /// The chat template is not a Jinja template.
    #[error("chat template: {source}")]
    TemplateSyntax {
        /// What the template engine said.
        source: Cause,
    },
    /// The chat template refuses the conversation.
    #[error("chat template refuses the conversation: {message}")]
    TemplateRaised {
        /// What it says.
        message: String,
    },
    /// The chat template fails on the conversation.
    #[error("chat template fails on the conversation: {source}")]
    TemplateRender {
        /// What the template engine said.
        source: Cause,
    },
    /// A conversation uses up all private characters, so that control tokens in it cannot be marked.
    #[error(
        "conversation holds {taken} different private-use characters, none is left to mark control tokens with"
    )]
    NoFreeMark {
        /// How many it holds.
        taken: usize,
    },
    /// A conversation places another number of pictures than were given.
    #[error("prompt has places for {placeholders} images, {images} given")]
    ImageCount {
        /// Places in the rendered conversation.
        placeholders: usize,
        /// Pictures given.
        images: usize,
    },
    /// The device, or reading the weights, failed.
    #[error(transparent)]
    Blas(#[from] fermi_blas::Error),
    /// The tower failed.
    #[error(transparent)]
    Tower(#[from] siglip2_tower::Error),
    /// The backbone failed.
    #[error(transparent)]
    Backbone(#[from] qwen3_hybrid::Error),
    /// A prompt is longer than the context.
    #[error("prompt of {prompt} tokens does not fit a context of {context}")]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens that the context has room for.
        context: usize,
    },
    /// A prompt has another number of image tokens than the pictures have embeddings.
    #[error("prompt has {pads} image tokens, the images have {embeddings} embeddings")]
    PadCount {
        /// Image tokens of the prompt.
        pads: usize,
        /// Embeddings of all pictures.
        embeddings: usize,
    },
    /// A picture that would have to be fetched.
    #[error("image at a `{scheme}:` URL: only files and data URLs are read")]
    RemoteImage {
        /// The URL's scheme.
        scheme: String,
    },
    /// An image part that names no picture was asked for one.
    #[error("image part names no file: the picture is for the caller to supply")]
    SuppliedImage,
    /// A picture was given to a model that has no tower.
    #[error("config.json has no `vision_config`: the model reads no images")]
    NoTower,
    /// A conversation was given to a checkpoint that has no tokenizer.
    #[error("the checkpoint has no tokenizer.json: it runs token ids only")]
    NoTokenizer,
    /// Pictures were given with raw ids, and nothing says which id stands for them.
    #[error("neither config.json (`image_token_id`) nor the tokenizer names the image token")]
    NoImageToken,
    /// `image_token_id` is no token id.
    #[error("{path}: `image_token_id` is {value}, expected a token id", path = .path.display())]
    ImageTokenId {
        /// The file.
        path: PathBuf,
        /// What stands there, as JSON.
        value: String,
    },
    /// The checkpoint's files name two image tokens.
    #[error("config.json gives image token {config}, the tokenizer {tokenizer}")]
    ImageTokenMismatch {
        /// The id in config.json.
        config: u32,
        /// The id by the tokenizer.
        tokenizer: u32,
    },
}

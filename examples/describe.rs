//! A picture and a question in, an answer out, streamed as it is generated.
//!
//! Without arguments: the checkpoint, the picture and the question that come along. The last argument is the question, all before it
//! are pictures.
//!
//! ```sh
//! cargo run --release -p examples --example describe
//! cargo run --release -p examples --example describe -- --model DIR street.jpg "What does the sign say?"
//! ```

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use examples::{DeviceOptions, GenerationOptions, ModelOptions, Program, bundled, stream};
use vlm_pipeline::{Image, Options, VlmBackend};

/// Answers a question about pictures.
#[derive(Parser)]
struct Args {
    /// Pictures, and the question last [default: a picture that comes along, "What is in the image?"]
    #[arg(value_name = "IMAGE... QUESTION")]
    inputs: Vec<String>,
    /// The most slices that a picture is cut into [default: the checkpoint's]
    #[arg(long, value_name = "N")]
    max_slices: Option<u32>,
    #[command(flatten)]
    generation: GenerationOptions,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    device: DeviceOptions,
}

fn main() -> ExitCode {
    let args = Args::parse();
    examples::exit(|| args.device.run(args))
}

impl Program for Args {
    fn run<B: VlmBackend>(self, device: &B) -> Result<()> {
        let (images, question) = match self.inputs.split_last() {
            Some((question, paths)) => {
                (paths.iter().map(Image::open).collect::<Result<_, _>>()?, question.as_str())
            }
            None => (vec![Image::open(bundled("tiny/sample_red_circle.png")?)?], "What is in the image?"),
        };
        let options = Options {
            context_length: self.generation.context_length,
            max_slices: self.max_slices,
            keep_prefix: false,
            ..Options::default()
        };
        let mut vlm = self.model.load(device, options)?;
        let chat = vlm.chat().thinking(self.generation.thinking.into());
        stream(chat.generate(self.generation.generate()).ask(&images, question)?)
    }
}

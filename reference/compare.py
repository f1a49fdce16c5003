"""The exactness table of a checkpoint: transformers in float32 beside our examples, on the same pictures and prompts.

    python compare.py --model DIR [--image FILE]... [--message FILE.json]... [--steps 64] [--threads 2] [--float64] [--device cpu] [--programs DIR]

DIR is a checkpoint in Hugging Face layout: the real one, or what `make_checkpoint` writes (no tokenizer there, so the prompts are
generated ids and the comparison of prompts is left out). Without `--image` three generated pictures are used. Our side runs
through `cargo run --release -p examples`, with the backbone in float32. With `--float64` each line also tells how far either side is from transformers in float64 (twice the memory).
The exit status tells whether every line holds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file

import float64
import golden
import synthetic
from cases import ROOT
from trace_language import margins
from trace_tower import trace as trace_tower

# What the project promises, relative to the largest magnitude of the tensor.
TOWER_TOLERANCE = 1e-5
LOGITS_TOLERANCE = 5e-5
# A step whose margin is smaller than this (relative to its largest logit) may choose otherwise: it is twice the logits' tolerance.
LEAST_MARGIN = 1e-4

QUESTIONS = ["What is the capital of France?", "What is 3 + 4?", "Tell me a story."]


class Table:
    """Lines of what | error | tolerance | verdict, as Markdown, and whether all hold."""

    def __init__(self):
        self.holds = True
        print("| what | measured | tolerance | holds |\n|---|---|---|---|", flush=True)

    def line(self, what: str, measured: str, tolerance: str, holds: bool):
        self.holds &= holds
        print(f"| {what} | {measured} | {tolerance} | {'yes' if holds else 'NO'} |", flush=True)

    def error(self, what: str, ours: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor | None, tolerance: float):
        if ours.shape != reference.shape:
            self.line(what, f"shape {list(ours.shape)} against {list(reference.shape)}", f"{tolerance:.0e}", False)
            return
        error = golden.relative_error(ours, reference)
        measured = f"{error:.1e}"
        if exact is not None:
            apart = [golden.relative_error(side, exact) for side in (ours, reference)]
            measured += f" (from float64: ours {apart[0]:.1e}, transformers {apart[1]:.1e})"
        self.line(what, measured, f"{tolerance:.0e}", error <= tolerance)


# A folder of built examples; without one, cargo builds them.
PROGRAMS: Path | None = None
# Where they compute.
DEVICE = "cpu"


def example(name: str, *arguments) -> str:
    """Runs one of our examples from the root of the repository; its standard output."""
    cargo = ["cargo", "run", "--release", "-q", "-p", "examples", "--example", name, "--"]
    command = [*([PROGRAMS / name] if PROGRAMS else cargo), *map(str, arguments)]
    if name != "prompt":
        command += ["--device", DEVICE]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return result.stdout


def generated_pictures(folder: Path) -> list[Path]:
    """Three pictures with detail at every scale: one that fits, one that is enlarged, one that is sliced."""
    paths = []
    for width, height in [(448, 448), (300, 200), (1084, 820)]:
        coarse = synthetic.raw(f"picture.{width}x{height}", 0, 16 * 12 * 3) % 256
        image = Image.frombytes("RGB", (16, 12), coarse.astype("uint8").tobytes()).resize((width, height), Image.Resampling.BICUBIC)
        paths.append(folder / f"{width}x{height}.png")
        image.save(paths[-1])
    return paths


class Reference:
    """transformers' side: the model in float32, the PIL image processor, and the processor where there is a tokenizer."""

    def __init__(self, folder: Path, exact: bool):
        from transformers import AutoProcessor
        from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil

        self.folder = folder
        self.config = json.loads((folder / "config.json").read_text())
        self.mode = self.config.get("downsample_mode", "16x")
        self.vision = "vision_config" in self.config
        self.model = golden.load(folder)
        self.exact = float64.twin(self.model) if exact else None
        own = (folder / "preprocessor_config.json").exists()
        self.images = MiniCPMV4_6ImageProcessorPil.from_pretrained(folder) if own else MiniCPMV4_6ImageProcessorPil()
        self.processor = None
        if (folder / "tokenizer.json").exists():
            self.processor = AutoProcessor.from_pretrained(folder)
            self.processor.image_processor = self.images

    def pixels(self, paths: list[Path]):
        """pixel_values [1, 3, 14, n*14] and target_sizes [slices, 2] of all pictures, one after another."""
        pictures = [Image.open(path).convert("RGB") for path in paths]
        out = self.images(pictures, downsample_mode=self.mode, return_tensors="pt")
        return out["pixel_values"].to(torch.float32), out["target_sizes"]

    def greedy(self, ids: list[int], paths: list[Path], steps: int):
        inputs = {"input_ids": torch.tensor([ids])}
        if paths:
            inputs["pixel_values"], inputs["target_sizes"] = self.pixels(paths)
            inputs["downsample_mode"] = self.mode
        chosen, logits = [], []
        for _ in range(steps):
            with torch.no_grad():
                output = self.model(**inputs, use_cache=True)
            # Releases before 5.24 call it past_key_values.
            name = "cache" if "cache" in output else "past_key_values"
            cache = {name: output[name]}
            logits.append(output.logits[0, -1])
            chosen.append(int(logits[-1].argmax()))
            inputs = {"input_ids": torch.tensor([[chosen[-1]]]), **cache}
        return chosen, torch.stack(logits)

    def exact_logits(self, ids: list[int], paths: list[Path], chosen: list[int]):
        """The logits of the same steps in float64, from one pass over everything."""
        inputs = {"input_ids": torch.tensor([ids + chosen[:-1]])}
        if paths:
            pixels, inputs["target_sizes"] = self.pixels(paths)
            inputs["pixel_values"], inputs["downsample_mode"] = pixels.double(), self.mode
        with torch.no_grad():
            return self.exact(**inputs, use_cache=False).logits[0, -len(chosen) :]

    def prompt(self, messages: list[dict]) -> tuple[str, list[int]]:
        """OpenAI-style messages through the checkpoint's own template, thinking off: the text, and its ids with the pads expanded."""
        turns, pictures = [], []
        for message in messages:
            content = message["content"]
            if isinstance(content, list):
                pictures += [Image.open(p["image_url"]["url"]).convert("RGB") for p in content if p["type"] != "text"]
                content = [part if part["type"] == "text" else {"type": "image"} for part in content]
            turns.append({**message, "content": content})
        tokenizer, template = self.processor.tokenizer, self.processor.chat_template
        text = tokenizer.apply_chat_template(
            turns, chat_template=template, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        out = self.processor(text=[text], images=pictures or None, images_kwargs={"downsample_mode": self.mode})
        return text, [int(i) for i in torch.as_tensor(out["input_ids"]).flatten()]


def pictures_of(messages: list[dict]) -> list[Path]:
    parts = [part for m in messages if isinstance(m["content"], list) for part in m["content"]]
    return [Path(part["image_url"]["url"]) for part in parts if part["type"] != "text"]


def compare_tower(table: Table, reference: Reference, paths: list[Path], folder: Path):
    rounds = reference.config.get("merger_times", 1)
    for path in paths:
        multiple = 2**rounds * (1 if reference.mode == "4x" else 2)
        if (reference.pixels([path])[1] % multiple).any():
            # The processor fits grids to one round of the projector; other grids are an error on either side.
            continue
        example("trace", "--model", reference.folder, "--image", path, "--out", folder / "trace.safetensors")
        ours = load_file(folder / "trace.safetensors")
        pixels, sizes = reference.pixels([path])
        same = torch.equal(ours["target_sizes"].to(torch.int64), sizes.to(torch.int64))
        table.line(f"{path.name}: target_sizes", str(sizes.tolist()), "equal", same)
        same = ours["pixel_values"].shape == pixels[0].shape and torch.equal(ours["pixel_values"], pixels[0])
        table.line(f"{path.name}: pixel_values", str(list(pixels[0].shape)), "equal", same)
        exact = {}
        if reference.exact is not None:
            exact = trace_tower(reference.exact, pixels[0].double(), sizes, reference.mode)
        for stage, expected in trace_tower(reference.model, pixels[0], sizes, reference.mode).items():
            if stage in ours:
                table.error(f"{path.name}: {stage}", ours[stage], expected, exact.get(stage), TOWER_TOLERANCE)
            else:
                table.line(f"{path.name}: {stage}", "absent", f"{TOWER_TOLERANCE:.0e}", False)


def compare_generation(table: Table, reference: Reference, what: str, ids, paths, steps: int, threads: int, folder: Path):
    chosen, logits = reference.greedy(ids, paths, steps)
    out = folder / "steps.safetensors"
    arguments = ["--model", reference.folder, "--ids", ",".join(map(str, ids)), "--max-new-tokens", steps, "--ignore-eos"]
    arguments += ["--precision", "f32", "--threads", threads, "--step-logits", out, "--json"]
    for path in paths:
        arguments += ["--image", path]
    ours = json.loads(example("generate", *arguments))["ids"]
    same = next((k for k, (a, b) in enumerate(zip(ours, chosen)) if a != b), min(len(ours), len(chosen)))
    # The step that first chooses otherwise still had the same history, so its logits count too.
    compared = min(same + 1, steps)
    exact = reference.exact_logits(ids, paths, chosen)[:compared] if reference.exact is not None else None
    step_logits = load_file(out)["step_logits"][:compared]
    table.error(f"{what}: logits of {compared} steps", step_logits, logits[:compared], exact, LOGITS_TOLERANCE)
    apart = margins(logits)
    if same == steps:
        table.line(f"{what}: tokens", f"{steps} of {steps} (least margin {apart.min():.1e})", "identical", True)
    else:
        excused = len(ours) == steps and float(apart[same]) < LEAST_MARGIN
        table.line(f"{what}: tokens", f"{same} of {steps}, then margin {apart[same]:.1e}", "identical", excused)


def conversations(paths: list[Path]) -> list[list[dict]]:
    """One text-only conversation a question, one picture each, and all pictures in one message."""
    picture = lambda path: {"type": "image_url", "image_url": {"url": str(path)}}
    ask = {"type": "text", "text": "What is in the image?"}
    out = [[{"role": "user", "content": question}] for question in QUESTIONS]
    out += [[{"role": "user", "content": [picture(path), ask]}] for path in paths]
    if len(paths) > 1:
        out.append([{"role": "user", "content": [*map(picture, paths[:2]), ask]}])
    return out


def compare_prompts(table: Table, reference: Reference, conversations, options, folder: Path):
    for index, messages in enumerate(conversations):
        text, expected = reference.prompt(messages)
        file = folder / "messages.json"
        file.write_text(json.dumps(messages, ensure_ascii=False))
        out = example("prompt", "--model", reference.folder, "--messages", file, "--thinking", "off", "--json")
        ours = json.loads(out)
        what = f"conversation {index} ({len(pictures_of(messages))} pictures)"
        table.line(f"{what}: prompt text", f"{len(text)} characters", "identical", ours["text"] == text)
        table.line(f"{what}: prompt ids", f"{len(expected)} tokens", "identical", ours["ids"] == expected)
        paths = pictures_of(messages)
        compare_generation(table, reference, what, expected, paths, options.steps, options.threads, folder)


def compare_ids(table: Table, reference: Reference, paths: list[Path], options, folder: Path):
    """Prompts of generated ids, for a checkpoint without a tokenizer."""
    text = reference.config.get("text_config", reference.config)
    pad = reference.config.get("image_token_id")
    below = min(text["vocab_size"], pad or text["vocab_size"]) - 1
    for length in (1, 5, 70, 300):
        ids = synthetic.token_ids(f"prompt.{length}", length, 0, below).tolist()
        compare_generation(table, reference, f"{length} ids", ids, [], options.steps, options.threads, folder)
    for path in paths if pad is not None else []:
        _, sizes = reference.pixels([path])
        pads = int(sizes.prod(-1).sum()) // (4 if reference.mode == "4x" else 16)
        ids = synthetic.token_ids("prompt.20", 20, 0, below).tolist()
        ids = ids[:10] + [pad] * pads + ids[10:]
        compare_generation(table, reference, f"{path.name} in 20 ids", ids, [path], options.steps, options.threads, folder)


def main():
    parser = argparse.ArgumentParser(description="the exactness table of a checkpoint")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--image", type=Path, action="append", default=[])
    parser.add_argument("--message", type=Path, action="append", default=[], help="a JSON array of OpenAI-style messages")
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--float64", action="store_true", help="also measure both sides against float64")
    parser.add_argument("--device", default="cpu", help="where our examples compute: cpu, or cuda with programs built for it")
    parser.add_argument("--programs", type=Path, help="a folder of built examples, to run instead of cargo's")
    options = parser.parse_args()
    global PROGRAMS, DEVICE
    DEVICE = options.device
    PROGRAMS = options.programs and options.programs.resolve()
    torch.set_num_threads(options.threads)
    reference = Reference(options.model.resolve(), options.float64)
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [path.resolve() for path in options.image] or generated_pictures(folder)
        paths = paths if reference.vision else []
        # Two rounds of the projector are defined for the tower alone.
        rounds = reference.config.get("merger_times", 1)
        compare_tower(table, reference, paths, folder)
        if reference.processor is not None:
            own = [json.loads(file.read_text()) for file in options.message]
            compare_prompts(table, reference, own or conversations(paths), options, folder)
        elif rounds == 1:
            compare_ids(table, reference, paths, options, folder)
    sys.exit(0 if table.holds else 1)


if __name__ == "__main__":
    main()

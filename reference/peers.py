"""Times of the peers on this machine: transformers and torch in float32, medians as JSON and as a Markdown table.

    python peers.py [--model DIR | --config FILE] [--threads 2] [--repeats 5] [--json OUT.json]

Without `--model` the weights are random, which changes no time. To claim anything, run ours beside it on the same machine.
"""

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import torch
import transformers
from transformers.initialization import no_init_weights
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule, torch_recurrent_gated_delta_rule

import golden
import synthetic

HEADS, WIDTH = 16, 128


def random_model(config: dict):
    """A float32 model whose weights are drawn uniformly, at the scales of `synthetic.distribution`."""
    with no_init_weights():
        model = synthetic.model_class(config)(synthetic.parse_config(config))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            center, scale = synthetic.distribution(name, tuple(parameter.shape))
            parameter.uniform_(center - scale, center + scale)
    return model.float().eval()


def median_ms(run, repeats: int) -> float:
    """Median of `repeats` runs in milliseconds, after one that is not counted."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def language(model, vocab: int, prompt: int, steps: int, repeats: int) -> dict:
    ids = synthetic.token_ids("prompt", prompt, 0, vocab)[None]

    def prefill_once():
        # The class itself would compute the logits of every position; a prompt needs those of the last.
        hidden = model.model(input_ids=ids, use_cache=True).last_hidden_state
        return model.lm_head(hidden[:, -1:])

    prefill = median_ms(prefill_once, repeats)
    cache = model(input_ids=ids, use_cache=True).cache
    token = ids[:, -1:]
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        output = model(input_ids=token, cache=cache, use_cache=True)
        cache, token = output.cache, output.logits[:, -1:].argmax(-1)
        times.append(1000 * (time.perf_counter() - start))
    step = statistics.median(times)
    return {
        "prefill_tokens": prompt,
        "prefill_ms": prefill,
        "prefill_tokens_per_second": 1000 * prompt / prefill,
        "decode_steps": steps,
        "decode_ms": step,
        "decode_tokens_per_second": 1000 / step,
    }


def tower(model, repeats: int) -> dict:
    pixels = synthetic.values("pixel_values.0", (1, 3, 14, 32 * 32 * 14), 0, 0.0, 1.0)
    sizes = torch.tensor([[32, 32]], dtype=torch.int32)
    return {"tower_448x448_ms": median_ms(lambda: model.get_image_features(pixels, sizes), repeats)}


def scan(tokens: int, repeats: int) -> dict:
    q, k, v = (torch.randn(1, tokens, HEADS, WIDTH) for _ in range(3))
    arguments = {
        "g": -torch.rand(1, tokens, HEADS),
        "beta": torch.rand(1, tokens, HEADS),
        "output_final_state": True,
        "use_qk_l2norm_in_kernel": True,
    }
    return {
        "scan_tokens": tokens,
        "scan_chunked_ms": median_ms(lambda: torch_chunk_gated_delta_rule(q, k, v, **arguments), repeats),
        "scan_recurrent_ms": median_ms(lambda: torch_recurrent_gated_delta_rule(q, k, v, **arguments), repeats),
    }


def processor_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def main():
    parser = argparse.ArgumentParser(description="times of transformers and torch on this machine")
    parser.add_argument("--model", type=Path, help="a checkpoint")
    parser.add_argument("--config", type=Path, help="a config.json, for random weights")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if (options.model is None) == (options.config is None):
        parser.error("give one of --model and --config")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    source = options.config or options.model / "config.json"
    config = json.loads(source.read_text())
    facts = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "processor": processor_name(),
        "threads": options.threads,
        "repeats": options.repeats,
    }
    with torch.no_grad():
        facts |= scan(options.prompt, options.repeats)
        model = golden.load(options.model) if options.model else random_model(config)
        facts["parameters"] = sum(p.numel() for p in model.parameters())
        vocab = config.get("text_config", config)["vocab_size"]
        facts |= language(model, vocab, options.prompt, options.steps, options.repeats)
        if "vision_config" in config:
            facts |= tower(model, options.repeats)
    print("| what | value |\n|---|---|")
    for key, value in facts.items():
        print(f"| {key} | {value:.4g} |" if isinstance(value, float) else f"| {key} | {value} |")
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()

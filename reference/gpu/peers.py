"""Times of transformers on the card, in float32 without TF32, on the checkpoint that ours are timed on.

    python peers.py --model DIR [--prompts 2048,10000] [--steps 32] [--repeats 5] [--json OUT.json]

Medians of the host's clock around work that is waited for; the first run is not counted.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import golden
import synthetic


def milliseconds(run) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start)


def median(run, repeats: int) -> float:
    run()
    return statistics.median(milliseconds(run) for _ in range(repeats))


def prefill(model, ids, repeats: int) -> float:
    def once():
        # The class itself would compute the logits of every position; a prompt needs those of the last.
        hidden = model.model(input_ids=ids, use_cache=True).last_hidden_state
        return model.lm_head(hidden[:, -1:])

    return median(once, repeats)


def decode(model, ids, steps: int) -> float:
    cache, token = model(input_ids=ids, use_cache=True).past_key_values, ids[:, -1:]
    times = []

    def once():
        nonlocal cache, token
        output = model(input_ids=token, past_key_values=cache, use_cache=True)
        cache, token = output.past_key_values, output.logits[:, -1:].argmax(-1)

    for _ in range(steps):
        times.append(milliseconds(once))
    return statistics.median(times)


def tower(model, repeats: int) -> float:
    pixels = synthetic.values("pixel_values.0", (1, 3, 14, 32 * 32 * 14), 0, 0.0, 1.0).cuda()
    sizes = torch.tensor([[32, 32]], dtype=torch.int32)
    return median(lambda: model.get_image_features(pixels, sizes), repeats)


def main():
    parser = argparse.ArgumentParser(description="times of transformers on the card")
    parser.add_argument("--model", type=Path, required=True, help="a checkpoint's folder")
    parser.add_argument("--prompts", default="2048,10000")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    facts = {"torch": torch.__version__, "transformers": transformers.__version__, "card": torch.cuda.get_device_name()}
    config = json.loads((options.model / "config.json").read_text())
    vocab = config.get("text_config", config)["vocab_size"]
    with torch.no_grad():
        model = golden.load(options.model).cuda()
        for tokens in map(int, options.prompts.split(",")):
            ids = synthetic.token_ids("prompt", tokens, 0, vocab)[None].cuda()
            facts[f"prefill_{tokens}_tokens_per_second"] = 1000 * tokens / prefill(model, ids, options.repeats)
        facts["decode_tokens_per_second"] = 1000 / decode(model, ids[:, :512], options.steps)
        if "vision_config" in config:
            facts["tower_448x448_ms"] = tower(model, options.repeats)
    print("| what | value |\n|---|---|")
    for key, value in facts.items():
        print(f"| {key} | {value:.4g} |" if isinstance(value, float) else f"| {key} | {value} |")
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()

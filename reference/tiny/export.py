"""Writes a trained state as a checkpoint folder in the Hugging Face layout.

    python reference/tiny/export.py part2/average folder    (or part2/state, for the weights without their average)
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

import data
from model import Flat

TEMPLATE = """{%- set ns = namespace(last=-1) -%}
{%- for m in messages -%}{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- for m in messages -%}
{{- '<|im_start|>' + m.role + '\\n' -}}
{%- if m.role == 'assistant' and loop.index0 > ns.last -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- if m.content is string -%}{{- m.content -}}{%- else -%}
{%- for c in m.content -%}{%- if c.type == 'image' -%}{{- '<|image_pad|>' -}}{%- else -%}{{- c.text -}}{%- endif -%}
{%- if not loop.last -%}{{- '\\n' -}}{%- endif -%}{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
"""
NAMES = {
    "image_token": "<|image_pad|>", "video_token": "<|video_pad|>", "image_start_token": "<image>", "image_end_token": "</image>",
    "slice_start_token": "<slice>", "slice_end_token": "</slice>", "image_id_start_token": "<image_id>",
    "image_id_end_token": "</image_id>",
}  # fmt: skip


def side_files(folder):
    """Everything but the weights."""
    def put(name, value):
        (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    put("config.json", data.config() | {"transformers_version": "5.24.0"})
    put("generation_config.json", {
        "_from_model_config": True, "do_sample": False, "eos_token_id": [data.ID["<|im_end|>"], data.ID["<|endoftext|>"]],
        "pad_token_id": data.ID["<|endoftext|>"], "transformers_version": "5.24.0", "use_cache": True,
    })  # fmt: skip
    half = [0.5, 0.5, 0.5]
    put("preprocessor_config.json", {
        "image_processor_type": "MiniCPMV4_6ImageProcessor", "processor_class": "MiniCPMV4_6Processor", "do_resize": True,
        "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": half, "image_std": half,
        "do_convert_rgb": True, "resample": 3, "max_slice_nums": 9, "scale_resolution": 448, "patch_size": 14, "slice_mode": True,
        "downsample_mode": "16x", "use_image_id": True,
    })  # fmt: skip
    added = {
        str(i): {"content": s, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": "think" not in s}
        for s, i in data.ID.items()
    }
    put("tokenizer_config.json", {
        "tokenizer_class": "Qwen2Tokenizer", "processor_class": "MiniCPMV4_6Processor", "add_bos_token": False,
        "add_prefix_space": False, "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": None,
        "errors": "replace", "split_special_tokens": False, "clean_up_tokenization_spaces": False, "model_max_length": 32768,
        **NAMES, "extra_special_tokens": NAMES, "added_tokens_decoder": added,
    })  # fmt: skip
    put("tokenizer.json", json.loads(data.build_tokenizer().to_str()))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def main(source, folder):
    from safetensors.torch import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    halves = [np.load(f"{source}_{x}.npz") for x in "ab"]
    flat = torch.from_numpy(np.concatenate([h["w"] for h in halves]))
    print("step", int(halves[0]["step"]))
    state = {k: v.bfloat16() for k, v in Flat(data.config()).state_dict(flat).items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    side_files(folder)
    size = (folder / "model.safetensors").stat().st_size
    print(f"{sum(v.numel() for v in state.values())} parameters, {size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])

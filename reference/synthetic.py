"""Random checkpoints that Python and Rust make bit for bit from a config and a seed.

Each value is a pure function of (tensor name, seed, flat index), so a golden file needs to hold outputs only. The Rust twin
stands in `fermi_blas::synthetic`; `fermi-blas/tests/data/synthetic.json` holds values that both must give.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
BLOCK = 1 << 20
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def fnv1a64(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def mix(z):
    """splitmix64's finaliser, over one Python int or over a uint64 array."""
    if isinstance(z, int):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def raw(name: str, seed: int, count: int, start: int = 0) -> np.ndarray:
    """The 24-bit integers u_start .. u_{start+count-1} of a name."""
    base = mix(fnv1a64(name.encode()) ^ ((seed * GOLDEN) & MASK))
    steps = np.arange(start + 1, start + count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return mix(np.uint64(base) + steps) >> np.uint64(40)


def values(name: str, shape, seed: int, center: float, scale: float) -> torch.Tensor:
    """float32(center + scale * (u / 2^23 - 1)), computed in float64."""
    count = math.prod(shape)
    out = np.empty(count, dtype=np.float32)
    # Block by block: an embedding of the full model has 254 million values.
    for start in range(0, count, BLOCK):
        block = raw(name, seed, min(BLOCK, count - start), start)
        out[start : start + len(block)] = center + scale * (block.astype(np.float64) / 2.0**23 - 1.0)
    return torch.from_numpy(out).reshape(list(shape))


def distribution(name: str, shape) -> tuple[float, float]:
    """(center, scale) of a weight: the first rule that fits its name."""
    if name.endswith("A_log"):
        return 1.0, 1.0
    if name.endswith("dt_bias"):
        return -3.0, 1.5
    if name.endswith("conv1d.weight"):
        return 0.0, math.sqrt(3.0 / shape[-1])
    if name.endswith("position_embedding.weight"):
        return 0.0, 0.5
    if name.endswith(("embed_tokens.weight", "lm_head.weight")):
        return 0.0, 2.0 * math.sqrt(3.0 / shape[-1])
    if name.endswith(".bias"):
        return 0.0, 0.1
    if len(shape) == 1:
        centred_at_one = "linear_attn.norm.weight" in name or any(
            part in name for part in ("layer_norm", "post_layernorm", "pre_norm")
        )
        return (1.0 if centred_at_one else 0.0), 0.2
    return 0.0, math.sqrt(3.0 / math.prod(shape[1:]))


def weight(name: str, shape, seed: int, dtype: str = "float32") -> torch.Tensor:
    return values(name, shape, seed, *distribution(name, shape)).to(DTYPES[dtype])


def token_ids(name: str, count: int, seed: int, below: int) -> torch.Tensor:
    """`count` token ids in [0, below)."""
    return torch.from_numpy((raw(name, seed, count) % np.uint64(below)).astype(np.int64))


def model_class(config: dict):
    import transformers

    if config["model_type"] == "minicpmv4_6":
        return transformers.MiniCPMV4_6ForConditionalGeneration
    return transformers.Qwen3_5ForCausalLM


def parse_config(config: dict):
    """The transformers config object of a config.json (as a dict)."""
    from transformers import MiniCPMV4_6Config, Qwen3_5TextConfig

    kind = MiniCPMV4_6Config if config["model_type"] == "minicpmv4_6" else Qwen3_5TextConfig
    return kind.from_dict(json.loads(json.dumps(config)))


def tensor_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """The tensors of a checkpoint of this config by the names they have in the file; no head when it is tied."""
    with torch.device("meta"):
        model = model_class(config)(parse_config(config))
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    if config.get("tie_word_embeddings", False):
        shapes.pop("lm_head.weight", None)
    return shapes


def mtp_shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """A few tensors of a multi-token-prediction head, which a reader must pass over."""
    hidden = config.get("text_config", config)["hidden_size"]
    return {
        "mtp.fc.weight": (hidden, 2 * hidden),
        "mtp.layers.0.input_layernorm.weight": (hidden,),
        "mtp.norm.weight": (hidden,),
    }


def write_checkpoint(out, config: dict, seed: int = 0, dtype: str = "float32", shards: int = 1, mtp: bool = False):
    """Writes config.json and the safetensors files; tensors are dealt to the shards in turn."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    shapes = tensor_shapes(config) | (mtp_shapes(config) if mtp else {})
    if shards == 1:
        tensors = {name: weight(name, shape, seed, dtype) for name, shape in shapes.items()}
        save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(shapes)
    files = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    weight_map = {name: files[i % shards] for i, name in enumerate(names)}
    for file in files:
        tensors = {n: weight(n, shapes[n], seed, dtype) for n in names if weight_map[n] == file}
        save_file(tensors, out / file, metadata={"format": "pt"})
    total = sum(math.prod(shape) * DTYPES[dtype].itemsize for shape in shapes.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def golden() -> dict:
    """Values of the generator itself, for the test of the Rust twin."""
    cases = []
    for name, shape, dtype in [
        ("model.language_model.layers.0.linear_attn.A_log", (16,), "float32"),
        ("model.language_model.layers.0.linear_attn.dt_bias", (16,), "bfloat16"),
        ("model.language_model.layers.0.linear_attn.conv1d.weight", (96, 1, 4), "float32"),
        ("model.language_model.layers.0.linear_attn.conv1d.weight", (96, 1, 3), "float16"),
        ("model.vision_tower.embeddings.position_embedding.weight", (4900, 144), "float32"),
        ("model.vision_tower.embeddings.patch_embedding.weight", (144, 3, 14, 14), "bfloat16"),
        ("model.language_model.embed_tokens.weight", (250, 64), "float32"),
        ("lm_head.weight", (250, 96), "float16"),
        ("model.vision_tower.encoder.layers.3.mlp.fc1.bias", (200,), "float32"),
        ("model.language_model.layers.0.linear_attn.norm.weight", (16,), "float32"),
        ("model.vision_tower.encoder.layers.0.layer_norm1.weight", (144,), "bfloat16"),
        ("model.vision_tower.post_layernorm.weight", (144,), "float32"),
        ("model.merger.mlp.0.pre_norm.weight", (576,), "float32"),
        ("model.language_model.layers.1.post_attention_layernorm.weight", (64,), "float32"),
        ("model.language_model.layers.3.self_attn.q_norm.weight", (32,), "float16"),
        ("model.language_model.norm.weight", (64,), "float32"),
        ("model.layers.0.mlp.down_proj.weight", (64, 160), "bfloat16"),
    ]:
        for seed in (0, 7, 123456789012345):
            center, scale = distribution(name, shape)
            first = weight(name, shape, seed, dtype).flatten()[:8].float()
            cases.append(
                {
                    "name": name,
                    "shape": list(shape),
                    "seed": seed,
                    "dtype": dtype,
                    "center": center,
                    "scale": scale,
                    "raw": [int(u) for u in raw(name, seed, 8)],
                    "f32_bits": [int(b) for b in first.view(torch.int32).numpy().view(np.uint32)],
                    "values": [float(v) for v in first],
                }
            )
    pixels = values("pixel_values.1", (3, 14, 56), 7, 0.0, 1.0).flatten()[:8]
    return {
        "fnv1a64": {name: str(fnv1a64(name.encode())) for name in ("", "a", "lm_head.weight")},
        "mix": {str(z): str(mix(z)) for z in (0, 1, GOLDEN)},
        "weights": cases,
        "pixel_values": {
            "name": "pixel_values.1",
            "seed": 7,
            "center": 0.0,
            "scale": 1.0,
            "f32_bits": [int(b) for b in pixels.view(torch.int32).numpy().view(np.uint32)],
        },
        "token_ids": {
            "name": "prompt.5",
            "seed": 7,
            "below": 240,
            "ids": token_ids("prompt.5", 5, 7, 240).tolist(),
        },
    }


def main():
    parser = argparse.ArgumentParser(description="the generator's golden values, or with --out a checkpoint")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=DTYPES, help="default: the config's, or bfloat16")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--mtp", action="store_true", help="add tensors of a multi-token-prediction head")
    options = parser.parse_args()
    if options.out:
        config = json.loads(options.config.read_text())
        dtype = options.dtype or config.get("dtype", "bfloat16")
        write_checkpoint(options.out, config, options.seed, dtype, options.shards, options.mtp)
        return
    target = Path(__file__).resolve().parent.parent / "fermi-blas/tests/data/synthetic.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(golden(), indent=1) + "\n")


if __name__ == "__main__":
    main()

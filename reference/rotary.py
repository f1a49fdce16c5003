"""Cosines and sines of rotary positions as transformers makes them: frequencies by torch's float32 power, angles by a float32
product. Writes fermi-blas/tests/data/rotary.json."""

import json
from pathlib import Path

import torch

CASES = [(1e7, 64), (1e7, 16), (1e6, 128), (1e4, 32), (5e5, 96)]
POSITIONS = [0, 1, 2, 7, 255, 1000, 4095, 16383]


def table(theta: float, dim: int) -> dict:
    # modeling_rope_utils / Qwen3_5TextRotaryEmbedding.compute_default_rope_parameters
    inv_freq = 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.int64).to(dtype=torch.float) / dim))
    positions = torch.tensor(POSITIONS, dtype=torch.float)
    angles = (inv_freq[:, None] @ positions[None, :]).T
    return {
        "theta": theta,
        "rotary_dim": dim,
        "positions": POSITIONS,
        "frequencies": [float(f) for f in inv_freq],
        "cosines": [float(x) for x in angles.cos().flatten()],
        "sines": [float(x) for x in angles.sin().flatten()],
    }


if __name__ == "__main__":
    target = Path(__file__).resolve().parent.parent / "fermi-blas/tests/data/rotary.json"
    target.write_text(json.dumps([table(*case) for case in CASES]) + "\n")

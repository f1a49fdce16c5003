"""Golden position ids: the buckets that the reference operator gives for every grid side."""

import numpy as np
import torch
from transformers.vision_utils import get_vision_nearest_position_ids

import cases
from golden import Golden
from synthetic import fnv1a64

SIDES = [20, 30, 32, 60, 70]


def buckets(n: int, side: int) -> np.ndarray:
    """Bucket of each of n patches along an axis: the operator's answer on a grid of one row of n."""
    return get_vision_nearest_position_ids(torch.tensor([[1, n]]), side).numpy().astype(np.uint8)


def main():
    golden = Golden(0.0, sides=SIDES, max_n=128)
    for side in SIDES:
        table = np.concatenate([buckets(n, side) for n in range(1, 129)])
        golden.whole(f"buckets.{side}", torch.from_numpy(table))
    long = np.array([fnv1a64(buckets(n, 70).tobytes()) for n in range(1, 1200)], dtype=np.uint64)
    golden.whole("hashes.70", torch.from_numpy(long))
    wide = [fnv1a64(b"".join(buckets(n, side).tobytes() for n in range(1, 200))) for side in range(2, 129)]
    golden.whole("hashes.sides", torch.from_numpy(np.array(wide, dtype=np.uint64)))
    grid = get_vision_nearest_position_ids(torch.tensor([[28, 36], [4, 8]]), 70)
    golden.whole("ids.28x36.4x8", grid.to(torch.int32))
    golden.save(cases.ROOT / "siglip2-tower/tests/data/positions.safetensors")


if __name__ == "__main__":
    main()

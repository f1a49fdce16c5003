"""Goldens of the image half: plans, resized pictures and pixel values of the PIL image processor.

    python reference/image_goldens.py

writes, into vlm-pipeline/tests/data,

* plans.txt: the plan of many sizes in both modes and under several maxima,
* resize.txt: hashes of pictures that Pillow resized,
* pixel_values.txt: hashes of what the processor hands to the tower, slice by slice.

The pictures are made by an integer formula (`picture`) that the tests repeat, so none is stored. A hash is the first
16 hexadecimal digits of SHA-256 over the bytes (little-endian float32 for pixel values).

Needs transformers 5.24, torch 2.11 and Pillow.
"""

import hashlib
import random
from pathlib import Path

import numpy as np
from PIL import Image
from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil

DATA = Path(__file__).resolve().parent.parent / "vlm-pipeline" / "tests" / "data"
PROCESSOR = MiniCPMV4_6ImageProcessorPil()


def picture(width: int, height: int, seed: int) -> np.ndarray:
    """[height, width, 3] bytes; by `seed % 3` waves with noise, noise alone, or black and white specks."""
    x = np.arange(width, dtype=np.uint32)[None, :, None]
    y = np.arange(height, dtype=np.uint32)[:, None, None]
    c = np.arange(3, dtype=np.uint32)[None, None, :]
    h = x * np.uint32(0x9E3779B1) + y * np.uint32(0x85EBCA77) + c * np.uint32(0xC2B2AE3D)
    h = h + np.uint32(seed * 0x27D4EB2F % 2**32)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x2C1B3C6D)
    h ^= h >> np.uint32(12)
    if seed % 3 == 0:
        wave = (x * (c + np.uint32(2)) + y * (np.uint32(5) - c)) % np.uint32(384)
        wave = np.where(wave < 192, wave, np.uint32(383) - wave)
        return (wave + (h & np.uint32(63))).astype(np.uint8)
    if seed % 3 == 1:
        return (h >> np.uint32(24)).astype(np.uint8)
    return np.where(h >> np.uint32(31), 255, 0).astype(np.uint8)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def plan_line(width: int, height: int, mode: str, maximum: int, slice_mode: bool = True) -> str:
    """The processor's own helpers on a size alone: w h mode max slicing | rows cols | overview and slice patches."""
    side, patch = PROCESSOR.scale_resolution, PROCESSOR.patch_size
    grid = PROCESSOR.get_sliced_grid((height, width), maximum, side) if slice_mode else None
    oh, ow = PROCESSOR.find_best_resize((height, width), side, patch, mode, allow_upscale=grid is None)
    fields = [width, height, mode, maximum, int(slice_mode), *(grid or (0, 0)), oh // patch, ow // patch]
    if grid:
        rh, rw = PROCESSOR.get_refine_size((height, width), grid, side, patch, mode, allow_upscale=True)
        fields += [rh // grid[0] // patch, rw // grid[1] // patch]
    else:
        fields += [0, 0]
    return " ".join(map(str, fields))


def plans(rng: random.Random) -> list[str]:
    sizes = [(1, 1), (224, 224), (448, 448), (449, 448), (448, 449), (447, 449), (896, 448), (448, 896)]
    sizes += [(1084, 820), (820, 1084), (5000, 4000), (4000, 5000), (1, 1000), (1000, 1), (5000, 5), (5, 5000)]
    sizes += [(1, 65535), (65535, 1), (65535, 65535), (5000, 1), (896, 896), (1344, 1344), (1344, 448), (20, 20000)]
    # squares and 2:1 make ties between a grid and its transpose
    sizes += [(448 * k, 448 * k) for k in range(2, 8)] + [(600 * k, 300 * k) for k in range(1, 8)]
    for _ in range(360):
        w = max(1, round(5000 ** rng.random()))
        h = max(1, min(4000, round(w * 1000 ** rng.uniform(-1, 1))))
        sizes.append((w, h))
    sizes += [(rng.randint(1, 5000), rng.randint(1, 4000)) for _ in range(240)]
    lines = []
    for index, (w, h) in enumerate(sizes):
        maxima = (0, 1, 2, 4, 9, 16, 36) if index < 40 else (9, rng.choice((2, 3, 4, 5, 6, 7, 12, 25, 36)))
        modes = ("16x", "4x") if index < 40 else (rng.choice(("16x", "4x")),)
        lines += [plan_line(w, h, mode, maximum) for mode in modes for maximum in maxima]
        if index % 8 == 0:
            lines.append(plan_line(w, h, rng.choice(("16x", "4x")), 9, slice_mode=False))
    return lines


def resizes(rng: random.Random) -> list[str]:
    """w h seed to_w to_h hash"""
    pairs = [((1, 1), (448, 448)), ((8, 1), (4, 1)), ((2, 1), (4, 1)), ((16, 1), (4, 1)), ((1, 7), (1, 3))]
    pairs += [((1, 1000), (56, 14000)), ((1000, 1), (14000, 56)), ((3, 3), (3, 9)), ((9, 5), (4, 5)), ((5, 5), (5, 5))]
    pairs += [((2000, 2), (56, 56)), ((2, 2000), (56, 56)), ((1001, 999), (1, 1)), ((640, 480), (504, 392))]
    for _ in range(70):
        a = [max(1, round(700 ** rng.random())) for _ in range(4)]
        pairs.append(((a[0], a[1]), (a[2], a[3])))
    # about where Pillow 13 begins to take the vertical pass first: a height that loses twice what the width loses
    for _ in range(24):
        w, h, less = rng.randint(60, 200), rng.randint(130, 300), rng.randint(-20, 50)
        pairs.append(((w, h), (w - less, max(1, h - 2 * less + rng.choice((-1, 0, 1))))))
    lines = []
    for seed, ((w, h), (tw, th)) in enumerate(pairs):
        out = Image.fromarray(picture(w, h, seed)).resize((tw, th), Image.Resampling.BICUBIC)
        lines.append(f"{w} {h} {seed} {tw} {th} {digest(np.asarray(out).tobytes())}")
    return lines


def pixel_values(rng: random.Random) -> list[str]:
    """w h seed mode max | rows,cols of patches and hash, per slice"""
    sizes = [(1, 1), (2, 1), (1, 3), (224, 224), (448, 448), (1084, 820), (820, 1084), (448, 896), (600, 400)]
    sizes += [(1, 1000), (1000, 1), (3000, 3), (4, 4000), (5000, 4000), (4000, 3000), (5000, 5), (1920, 1080)]
    for _ in range(55):
        w = max(1, round(2000 ** rng.random()))
        h = max(1, min(2000, round(w * 1000 ** rng.uniform(-1, 1))))
        sizes.append((w, h))
    sizes += [(rng.randint(1, 1200), rng.randint(1, 1200)) for _ in range(45)]
    sizes += [(rng.randint(1200, 3000), rng.randint(1200, 2500)) for _ in range(6)]
    lines = []
    for seed, (w, h) in enumerate(sizes):
        image = Image.fromarray(picture(w, h, seed))
        mode = ("16x", "4x")[seed % 2]
        maximum = (9, 9, 4, 36, 1)[seed % 5]
        out = PROCESSOR(image, downsample_mode=mode, max_slice_nums=maximum, return_tensors="np")
        assert plan_line(w, h, mode, maximum).split()[5:7] == [str(n) for n in out["grids"][0]]
        packed, start, fields = out["pixel_values"][0], 0, [w, h, seed, mode, maximum]
        assert packed.dtype == np.float32
        for rows, cols in out["target_sizes"]:
            stop = start + rows * cols * PROCESSOR.patch_size
            fields.append(f"{rows},{cols},{digest(np.ascontiguousarray(packed[:, :, start:stop]).tobytes())}")
            start = stop
        assert start == packed.shape[-1]
        lines.append(" ".join(map(str, fields)))
    return lines


def main() -> None:
    DATA.mkdir(parents=True, exist_ok=True)
    for name, make in (("plans", plans), ("resize", resizes), ("pixel_values", pixel_values)):
        lines = make(random.Random(f"{name} 46"))
        (DATA / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        print(f"{name}.txt: {len(lines)} lines")


if __name__ == "__main__":
    main()

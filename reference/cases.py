"""The table of golden cases: which config, how its checkpoint is written, and what it is fed."""

import json
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass
class Case:
    """A config in `configs/`, with the recipe of its checkpoint.

    `grids` are the slices fed to the tower, as (rows, columns) of patches; empty when there is no tower.
    `language` says whether the backbone is traced.
    """

    name: str
    seed: int
    shards: int = 1
    mtp: bool = False
    grids: list[tuple[int, int]] = field(default_factory=list)
    language: bool = True

    @property
    def config(self) -> dict:
        return json.loads((HERE / "configs" / f"{self.name}.json").read_text())

    @property
    def dtype(self) -> str:
        return self.config["dtype"]


# Seeds are such that float32 itself stays near float64 (the scripts check it) and no greedy margin is below 1e-4.
# The grids hold both orders of sides, a single window, the paper's tie (28 rows: 10/28 = 25/70) and sides beyond the position grid.
CASES = [
    Case("base", 2, grids=[(28, 36), (4, 8), (32, 4)]),
    Case("grouped", 4, grids=[(12, 20), (4, 4), (8, 68)]),
    Case("conv3", 9, shards=3, grids=[(20, 12), (36, 4), (4, 8)]),
    Case("four_x", 5, mtp=True, grids=[(2, 6), (32, 32), (10, 2)]),
    Case("twice", 6, grids=[(8, 16), (24, 8)], language=False),
    Case("twice_4x", 8, grids=[(4, 12), (20, 4)], language=False),
    Case("real_heads", 3, grids=[(32, 32), (8, 4)]),
    Case("text_only", 10, mtp=True),
]

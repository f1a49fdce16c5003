"""Golden file of the tower at its published size, 27 layers of 1152: run once, in about 12 GB of memory.

The language half of the config is cut to one layer: only its width matters here. The test that reads the result is
`cargo test --release -p siglip2-tower --test full_size -- --ignored --nocapture`.
"""

import shutil
import time

import torch

import cases
import float64
from golden import Golden, load_case, spread
from trace_tower import DATA, NOISE_LIMIT, check_slices_apart, pixels, trace

CASE = cases.Case("full_tower", 11, grids=[(32, 32), (28, 36), (8, 16)], language=False)


def main():
    model = load_case(CASE)
    slices = pixels(CASE.seed, CASE.grids)
    sizes = torch.tensor(CASE.grids, dtype=torch.int32)
    start = time.perf_counter()
    stages = trace(model, torch.cat(slices, dim=-1), sizes)
    print(f"  float32: {time.perf_counter() - start:.1f} s on {torch.get_num_threads()} threads")
    check_slices_apart(model, slices, sizes, stages["merger"])
    twin = float64.twin(model)
    del model
    exact = trace(twin, torch.cat(slices, dim=-1).double(), sizes)
    golden = Golden(NOISE_LIMIT, seed=CASE.seed, dtype=CASE.dtype, shards=CASE.shards, mtp=CASE.mtp, stages=list(stages))
    golden.whole("target_sizes", sizes)
    for name, tensor in stages.items():
        golden.sample(name, tensor, exact[name], 6_000 if name == "merger" else 400)
        print(f"  {name:20} {list(tensor.shape)} {spread(tensor)}")
    golden.save(DATA / f"{CASE.name}.safetensors")
    shutil.copy(cases.HERE / f"configs/{CASE.name}.json", DATA / f"{CASE.name}.json")


if __name__ == "__main__":
    main()

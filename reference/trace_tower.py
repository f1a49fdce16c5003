"""Golden files of the vision tower: every stage of each case, by the reference's names, in float32 on the CPU."""

import shutil

import torch

import cases
import float64
import synthetic
from golden import Golden, load_case, spread

DATA = cases.ROOT / "siglip2-tower/tests/data"
# Measured: at most 1.3e-6.
NOISE_LIMIT = 2e-6


def trace(model, pixel_values: torch.Tensor, target_sizes: torch.Tensor, mode: str | None = None) -> dict[str, torch.Tensor]:
    """Every stage's output in the order it is computed, [rows, width], slices one after another.

    `pixel_values` is [3, 14, n*14] with the patches of all slices side by side, `target_sizes` [slices, 2] (rows, columns).
    """
    stages: dict[str, list[torch.Tensor]] = {}
    hooks = []

    def record(name):
        def hook(_module, _args, output):
            tensor = output[0] if isinstance(output, tuple) else output
            stages.setdefault(name, []).append(tensor.detach().reshape(-1, tensor.shape[-1]))

        return hook

    tower, merger = model.model.vision_tower, model.model.merger
    hooks.append(tower.embeddings.register_forward_hook(record("embeddings")))
    for index, layer in enumerate(tower.encoder.layers):
        hooks.append(layer.register_forward_hook(record(f"encoder.layers.{index}")))
    hooks.append(tower.vit_merger.register_forward_hook(record("vit_merger")))
    hooks.append(tower.post_layernorm.register_forward_hook(record("post_layernorm")))
    for index, mlp in enumerate(merger.mlp[:-1]):
        hooks.append(mlp.register_forward_hook(record(f"merger.mlp.{index}")))
    with torch.no_grad():
        output = model.get_image_features(pixel_values[None], target_sizes, downsample_mode=mode)
    for hook in hooks:
        hook.remove()
    stages["merger"] = list(output.pooler_output)
    return {name: torch.cat(parts) for name, parts in stages.items()}


def pixels(case_seed: int, grids) -> list[torch.Tensor]:
    """The slices' pixel values [3, 14, n*14], from the generator under the names pixel_values.0, pixel_values.1, ..."""
    return [
        synthetic.values(f"pixel_values.{k}", (3, 14, rows * columns * 14), case_seed, 0.0, 1.0)
        for k, (rows, columns) in enumerate(grids)
    ]


def main():
    for case in cases.CASES:
        if not case.grids:
            continue
        model = load_case(case)
        slices = pixels(case.seed, case.grids)
        sizes = torch.tensor(case.grids, dtype=torch.int32)
        stages = trace(model, torch.cat(slices, dim=-1), sizes)
        check_slices_apart(model, slices, sizes, stages["merger"])
        exact = trace(float64.twin(model), torch.cat(slices, dim=-1).double(), sizes)
        golden = Golden(NOISE_LIMIT, seed=case.seed, dtype=case.dtype, shards=case.shards, mtp=case.mtp, stages=list(stages))
        golden.whole("target_sizes", sizes)
        keep = 14_000 // len(stages)
        for name, tensor in stages.items():
            golden.sample(name, tensor, exact[name], 8_000 if name == "merger" else keep)
            print(f"  {name:20} {list(tensor.shape)} {spread(tensor)}")
        golden.save(DATA / f"{case.name}.safetensors")
        shutil.copy(cases.HERE / f"configs/{case.name}.json", DATA / f"{case.name}.json")


def check_slices_apart(model, slices, sizes, together):
    """The reference itself must give each slice the same output alone as in company."""
    alone = [trace(model, s, sizes[k : k + 1])["merger"] for k, s in enumerate(slices)]
    error = (torch.cat(alone) - together).abs().max() / together.abs().max()
    print(f"  slices alone against together: {error:.1e}")
    if error > 1e-5:
        raise RuntimeError("slices influence each other")


if __name__ == "__main__":
    main()

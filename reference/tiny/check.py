"""Compares the training forward with the library's model, and the layout of slices with the library's processor."""

import torch
from transformers import MiniCPMV4_6Config, MiniCPMV4_6ForConditionalGeneration

import data
from model import Flat, Model, loss_of


def reorder(patches, rows, cols):
    """Raster patches [rows * cols, ...] to the training order: merged token, window, patch."""
    rest = patches.shape[1:]
    x = patches.view(rows // 4, 2, 2, cols // 4, 2, 2, *rest)
    order = (0, 3, 1, 4, 2, 5, *range(6, 6 + len(rest)))
    return x.permute(order).reshape(-1, *rest)


def main():
    torch.manual_seed(0)
    cfg = data.config()
    flat = Flat(cfg)
    weights = flat.init(1)
    weights += 0.02 * torch.randn_like(weights)
    state = flat.state_dict(weights)
    library = MiniCPMV4_6ForConditionalGeneration(MiniCPMV4_6Config.from_dict(cfg)).eval()
    missing, extra = library.load_state_dict(state, strict=False)
    assert not extra and missing == ["lm_head.weight"], (missing, extra)
    library.tie_weights()
    print("parameters", sum(p.numel() for p in library.parameters()), "flat", flat.total)
    fast, (vis, text) = Model(cfg), flat.both(weights)

    sizes = torch.tensor([[32, 32], [28, 36]])
    packed = torch.randn(1, 3, 14, 14 * int(sizes.prod(1).sum()))
    with torch.no_grad():
        want = library.model.get_image_features(packed, sizes).pooler_output
        at, worst = 0, 0.0
        for (r, c), ref in zip(sizes.tolist(), want):
            mine = packed[0, :, :, at : at + 14 * r * c].view(3, 14, r * c, 14).permute(2, 0, 1, 3).reshape(r * c, -1)
            at += 14 * r * c
            rows = torch.arange(r * c) // c * 70 // r
            cols = torch.arange(r * c) % c * 70 // c
            mine, rows, cols = (reorder(z, r, c)[None] for z in (mine, rows, cols))
            got = fast.vision(mine, rows, cols, vis)[0]
            worst = max(worst, (got - ref).abs().max().item())
            grown = [torch.cat((z, z[:, :32] * 0), 1) for z in (mine, rows, cols)]
            hide = (torch.arange(r * c // 16 + 2) >= r * c // 16)[None]
            got = fast.vision(*grown, vis, hide)[0, : r * c // 16]
            worst = max(worst, (got - ref).abs().max().item())
        print(f"vision: largest difference {worst:.2e} of {want[0].abs().max():.2f}")
        assert worst < 1e-4

        ids = torch.randint(0, 755, (2, 256))
        want = library(input_ids=ids).logits
        pos = torch.arange(256).expand(2, -1)
        emb = torch.nn.functional.embedding(ids, text["embed"])
        x = fast.text(emb, pos, (pos == 0).float(), None, text)
        got = torch.nn.functional.linear(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * (1 + text["t.norm"]), text["embed"])
        print(f"text: largest difference {(got - want).abs().max():.2e} of {want.abs().max():.2f}")
        assert (got - want).abs().max() < 2e-3
        # two conversations in one row
        pos = torch.cat((torch.arange(100), torch.arange(156)))[None]
        block = torch.cat((torch.zeros(100), torch.ones(156)))
        bias = torch.zeros(1, 1, 256, 256).masked_fill(~((block[:, None] == block) & torch.ones(256, 256, dtype=torch.bool).tril()), -1e9)
        x = fast.text(emb[:1], pos, (pos == 0).float(), bias, text)
        ref = library(input_ids=ids[:1, 100:]).logits
        got = torch.nn.functional.linear(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * (1 + text["t.norm"]), text["embed"])
        print(f"packed: largest difference {(got[:, 100:] - ref).abs().max():.2e}")
        assert (got[:, 100:] - ref).abs().max() < 2e-3

    x = torch.randn(1, 128, 128, requires_grad=True)
    pos = torch.arange(128)[None]
    y = fast.text(x, pos, (pos == 0).float(), None, text)
    loss_of(y, text, torch.randint(0, 755, (1, 128)))[0].sum().backward()
    lib = library.model.language_model(inputs_embeds=(z := x.detach().clone().requires_grad_())).last_hidden_state
    print("finite gradient", bool(x.grad.isfinite().all()), tuple(lib.shape), z.requires_grad)
    layouts()


def layouts():
    """The processor's grids and sizes against `scenes.layout` on many picture sizes."""
    import random

    from scenes import layout
    from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil as Processor

    p, rng = Processor(), random.Random(3)
    for _ in range(3000):
        w, h = rng.randint(100, 1400), rng.randint(100, 1400)
        grid = p.get_sliced_grid((h, w), 9, 448)
        size = p.find_best_resize((h, w), 448, 14, "16x", allow_upscale=grid is None)
        want = [(size[0] // 56, size[1] // 56)]
        if grid:
            rh, rw = p.get_refine_size((h, w), grid, 448, 14, "16x", allow_upscale=True)
            want += [(rh // grid[0] // 56, rw // grid[1] // 56)] * (grid[0] * grid[1])
        mine_grid, parts = layout(w, h)
        assert (tuple(grid) if grid else None) == mine_grid and [x[:2] for x in parts] == want, (w, h, grid, mine_grid)
    print("layouts agree on 3,000 sizes")


if __name__ == "__main__":
    main()

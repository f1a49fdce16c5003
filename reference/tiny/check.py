"""Compares the training forward with the library's model, and the layout of slices with the library's processor."""

import torch
from transformers import MiniCPMV4_6Config, MiniCPMV4_6ForConditionalGeneration

import data
from model import Flat, Model, rms


def reorder(patches, rows, cols):
    """Raster patches [rows * cols, ...] to the training order: merged token, window, patch."""
    rest = patches.shape[1:]
    x = patches.view(rows // 4, 2, 2, cols // 4, 2, 2, *rest)
    order = (0, 3, 1, 4, 2, 5, *range(6, 6 + len(rest)))
    return x.permute(order).reshape(-1, *rest)


def logits(fast, text, ids, pos, rows, bias=None):
    x = fast.text(torch.nn.functional.embedding(ids, text["embed"]), pos, text, rows, bias)
    return torch.nn.functional.linear(rms(x, text["t.norm"]), text["embed"])


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
        got = logits(fast, text, ids.flatten(), torch.arange(256).repeat(2), 2)
        worst = (got.view_as(want) - want).abs().max()
        print(f"text: largest difference {worst:.2e} of {want.abs().max():.2f}")
        assert worst < 2e-3
        # two conversations in one row
        pos, block = torch.cat((torch.arange(100), torch.arange(156))), (torch.arange(256) >= 100).float()
        seen = (block[:, None] == block) & torch.ones(256, 256, dtype=torch.bool).tril()
        got = logits(fast, text, ids[0], pos, 1, torch.zeros(1, 1, 256, 256).masked_fill(~seen, -1e9))
        worst = (got[100:] - library(input_ids=ids[:1, 100:]).logits[0]).abs().max()
        print(f"packed: largest difference {worst:.2e}")
        assert worst < 2e-3

    # gradients of the delta rule and all else, through the inputs
    x = torch.randn(128, 128, requires_grad=True)
    y = torch.randn(128, 128)
    (fast.text(x, torch.arange(128), text, 1) * y).sum().backward()
    z = x.detach().clone().requires_grad_()
    hidden = library.model.language_model
    hidden.norm = torch.nn.Identity()
    (hidden(inputs_embeds=z[None]).last_hidden_state[0] * y).sum().backward()
    worst = (x.grad - z.grad).abs().max() / z.grad.abs().max()
    print(f"gradient: largest relative difference {worst:.2e}")
    assert worst < 1e-3
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

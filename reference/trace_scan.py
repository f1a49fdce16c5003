"""Golden files of the gated delta rule: outputs and states in float64 for the cases that are hard to get right."""

import math

import torch
from transformers.models.qwen3_5.modeling_qwen3_5 import torch_chunk_gated_delta_rule

import cases
import float64
import synthetic
from golden import Golden

DATA = cases.ROOT / "gdn-scan/tests/data"
SEED = 11

# name: tokens, key heads, value heads, key width, value width, whether a state comes in
SHAPES = {
    "one": (1, 2, 2, 16, 16, True),
    "short": (3, 2, 4, 8, 12, False),
    "below_chunk": (63, 2, 2, 16, 16, True),
    "one_chunk": (64, 2, 2, 16, 16, False),
    "above_chunk": (65, 2, 2, 16, 16, True),
    "grouped": (130, 2, 6, 12, 20, True),
    "narrow_values": (100, 3, 3, 24, 8, True),
    "real_heads": (200, 1, 2, 128, 128, True),
    "decay_2": (64, 2, 2, 16, 16, True),
    "decay_30": (70, 2, 2, 16, 16, True),
    "decay_10000": (70, 2, 2, 16, 16, True),
    "decay_none": (130, 2, 2, 16, 16, True),
    "one_90_among_zeros": (130, 2, 2, 16, 16, True),
    "one_10000_among_small": (130, 2, 2, 16, 16, True),
    "beta_0": (70, 2, 2, 16, 16, True),
    "beta_1": (130, 2, 2, 16, 16, True),
}
LONG_MEMORY = ("one_10000_among_small", "grouped", "real_heads", "above_chunk", "narrow_values", "beta_0")


def decay(name: str, tokens: int, heads: int) -> torch.Tensor:
    """Log decays [tokens, heads]: constant in the cases that say so, else drawn from [-2, 0] or, where memory is to be long, [-0.1, -0.001]."""
    constant = {"decay_2": -2.0, "decay_30": -30.0, "decay_10000": -1e4, "decay_none": 0.0, "one_90_among_zeros": 0.0}
    if name in constant:
        g = torch.full((tokens, heads), constant[name])
    elif name in LONG_MEMORY:
        g = synthetic.values(f"{name}.g", (tokens, heads), SEED, -0.0505, 0.0495)
    else:
        g = synthetic.values(f"{name}.g", (tokens, heads), SEED, -1.0, 1.0)
    if name == "one_90_among_zeros":
        g[20] = -90.0
    if name == "one_10000_among_small":
        g[20] = -1e4
    return g


def write_strength(name: str, tokens: int, heads: int) -> torch.Tensor:
    if name in ("beta_0", "beta_1"):
        return torch.full((tokens, heads), float(name[-1]))
    return synthetic.values(f"{name}.beta", (tokens, heads), SEED, 0.5, 0.5)


def sequential(q, k, v, g, beta, state):
    """The rule token by token in float64, over [T, heads, width]; heads of q and k already repeated."""
    q = q / (q.square().sum(-1, keepdim=True) + 1e-6).sqrt() / math.sqrt(q.shape[-1])
    k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    out = []
    for t in range(len(q)):
        state = state * g[t].exp()[:, None, None]
        delta = beta[t][:, None] * (v[t] - torch.einsum("hk,hkv->hv", k[t], state))
        state = state + k[t][:, :, None] * delta[:, None, :]
        out.append(torch.einsum("hk,hkv->hv", q[t], state))
    return torch.stack(out), state


def main():
    exact_module = float64.widened(float64.MODULES[0])
    golden = Golden(math.inf, seed=SEED, cases={n: dict(zip(("T", "Hk", "Hv", "Dk", "Dv", "state"), s)) for n, s in SHAPES.items()})
    for name, (tokens, key_heads, heads, key_width, width, has_state) in SHAPES.items():
        q, k = (synthetic.values(f"{name}.{x}", (tokens, key_heads, key_width), SEED, 0.0, 1.0) for x in "qk")
        v = synthetic.values(f"{name}.v", (tokens, heads, width), SEED, 0.0, 1.0)
        state = synthetic.values(f"{name}.s0", (heads, key_width, width), SEED, 0.0, 1.0) * float(has_state)
        g, beta = decay(name, tokens, heads), write_strength(name, tokens, heads)
        group = heads // key_heads
        wide = [x.double() for x in (q.repeat_interleave(group, 1), k.repeat_interleave(group, 1), v, g, beta, state)]
        out, last = sequential(*wide)

        inputs = [x[None] for x in (q, k, v, g, beta)]
        options = {"initial_state": state[None], "output_final_state": True, "use_qk_l2norm_in_kernel": True}
        theirs, their_state = torch_chunk_gated_delta_rule(*inputs, **options)
        options["initial_state"] = state[None].double()
        step, step_state = exact_module.torch_recurrent_gated_delta_rule(*(x.double() for x in inputs), **options)
        apart = max(float((step[0] - out).abs().max()), float((step_state[0] - last).abs().max()))
        if apart > 1e-12:
            raise RuntimeError(f"{name}: float64 here and the reference's recurrence differ by {apart:.1e}")

        golden.whole(f"{name}.g", g)
        golden.whole(f"{name}.beta", beta)
        golden.sample(f"{name}.out", out, theirs[0], 800)
        golden.sample(f"{name}.s1", last, their_state[0], 400)
        print(name, golden.metadata[f"{name}.out"], golden.metadata[f"{name}.s1"])
    golden.save(DATA / "scan.safetensors")


if __name__ == "__main__":
    main()

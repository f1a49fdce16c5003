"""What stands around the scan, in float64 by torch: gates and causal convolution; and an input of the example `scan`.

The cases of the scan itself are made by trace_scan.py.
"""

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import synthetic
from trace_scan import DATA, SEED, sequential

# name: tokens, channels, taps
CONVOLUTIONS = {"k1": (5, 20, 1), "k2": (9, 7, 2), "k3": (70, 12, 3), "k4": (33, 40, 4), "k8": (12, 16, 8), "short": (2, 16, 4)}
EXAMPLE = "grouped"


def drawn(name: str, *shape: int, scale: float = 1.0, center: float = 0.0) -> torch.Tensor:
    return synthetic.values(name, shape, SEED, center, scale)


def front() -> dict[str, torch.Tensor]:
    """Float64 results, rounded once; the inputs are made anew by the tests."""
    tensors = {}
    for name, (tokens, channels, taps) in CONVOLUTIONS.items():
        x, past = drawn(f"{name}.x", tokens, channels), drawn(f"{name}.past", taps - 1, channels)
        weight = drawn(f"{name}.weight", channels, taps)
        everything = torch.cat([past, x]).double()
        out = F.conv1d(everything.T[None], weight.double()[:, None], groups=channels)[0].T
        tensors[f"{name}.plain"] = out
        tensors[f"{name}.silu"] = F.silu(out)
        tensors[f"{name}.state"] = everything[tokens:]
    a, b = drawn("gates.a", 40, 6, scale=30.0), drawn("gates.b", 40, 6, scale=30.0)
    a_log, dt_bias = drawn("gates.a_log", 6, center=1.0), drawn("gates.dt_bias", 6, center=-3.0, scale=1.5)
    tensors["gates.g"] = -a_log.double().exp() * F.softplus(a.double() + dt_bias.double())
    tensors["gates.beta"] = b.double().sigmoid()
    return {name: value.float().contiguous() for name, value in tensors.items()}


def example() -> dict[str, torch.Tensor]:
    """NAME.q ... NAME.s0, as the example reads them, and NAME.out and NAME.s1 as it should write `out` and `s1`."""
    tokens, key_heads, heads, key_width, width = 70, 2, 4, 16, 8
    q, k = (drawn(f"example.{x}", tokens, key_heads, key_width) for x in "qk")
    v, s0 = drawn("example.v", tokens, heads, width), drawn("example.s0", heads, key_width, width)
    g = drawn("example.g", tokens, heads, center=-0.5, scale=0.5)
    beta = drawn("example.beta", tokens, heads, center=0.5, scale=0.5)
    group = heads // key_heads
    wide = (q.repeat_interleave(group, 1), k.repeat_interleave(group, 1), v, g, beta, s0)
    out, s1 = sequential(*(x.double() for x in wide))
    tensors = {"q": q, "k": k, "v": v, "g": g, "beta": beta, "s0": s0, "out": out.float(), "s1": s1.float()}
    return {f"{EXAMPLE}.{name}": value.contiguous() for name, value in tensors.items()}


if __name__ == "__main__":
    for name, tensors in (("front", front()), ("example", example())):
        path = DATA / f"{name}.safetensors"
        save_file(tensors, path)
        path.chmod(0o644)
        print(path.name, path.stat().st_size, "bytes")

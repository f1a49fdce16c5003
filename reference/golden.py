"""Golden files: strided samples of large tensors with the facts that a test needs to compare against them."""

import json
import math
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file

import synthetic


def load_case(case):
    """The case's checkpoint, written to a folder and read back by transformers in float32."""
    with tempfile.TemporaryDirectory() as folder:
        synthetic.write_checkpoint(folder, case.config, case.seed, case.dtype, case.shards, case.mtp)
        return load(folder)


def load(folder):
    """A checkpoint folder as a float32 model; a tensor that is missing or of another shape is an error."""
    config = json.loads((Path(folder) / "config.json").read_text())
    model, info = synthetic.model_class(config).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    if info["missing_keys"] or info["mismatched_keys"]:
        raise RuntimeError(f"{folder}: {info}")
    return model.eval()


class Golden:
    """Collects tensors for one safetensors file.

    A float tensor NAME is stored flat, every `stride`-th value of its row-major order from 0 on; the metadata entry NAME holds
    {"shape", "stride", "absmax", "noise"} of the whole tensor as JSON; noise is the largest difference of the float32 reference from
    the float64 one, relative to absmax. The stride is a prime that no width here is a multiple of, so
    that every column is met.
    """

    def __init__(self, noise_limit: float, **facts):
        self.noise_limit = noise_limit
        self.tensors = {}
        self.metadata = {key: json.dumps(value) for key, value in facts.items()}

    def fact(self, key: str, value):
        """Adds a metadata entry, as JSON."""
        self.metadata[key] = json.dumps(value)

    def sample(self, name: str, tensor: torch.Tensor, exact: torch.Tensor, keep: int):
        """Adds about `keep` values of a float32 tensor, or all of them when there are no more than that.

        A seed at which the reference's own float32 strays from float64 by more than `noise_limit` is no ground to test on
        (a delta head whose output is nearly zero is enlarged, with its rounding, by the norm behind it): choose another.
        """
        flat = tensor.detach().to(torch.float32).contiguous().flatten()
        if not torch.isfinite(flat).all():
            raise RuntimeError(f"{name} is not finite")
        stride = 1
        if flat.numel() > keep:
            stride = next_prime(math.ceil(flat.numel() / keep), tensor.shape[-1])
        self.tensors[name] = flat[::stride].clone()
        noise = relative_error(tensor, exact)
        if noise > self.noise_limit:
            raise RuntimeError(f"{name}: float32 is {noise:.1e} from float64")
        entry = {"shape": list(tensor.shape), "stride": stride, "absmax": float(flat.abs().max()), "noise": noise}
        self.metadata[name] = json.dumps(entry)

    def whole(self, name: str, tensor: torch.Tensor):
        """Adds a tensor as it is (ids, counts, tables)."""
        self.tensors[name] = tensor.contiguous()

    def save(self, path):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(self.tensors, path, metadata=self.metadata)
        sort_metadata(path)
        path.chmod(0o644)
        size = path.stat().st_size
        print(f"{path.name}: {size} bytes, {len(self.tensors)} tensors")
        if size > 100_000:
            raise RuntimeError(f"{path} is over 100 kB")


def sort_metadata(path: Path):
    """Rewrites a file's header with its metadata in order: the writer's is random, and every run would change the file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def relative_error(tensor: torch.Tensor, exact: torch.Tensor) -> float:
    """Largest difference, relative to the largest magnitude."""
    return float((tensor.double() - exact.double()).abs().max() / exact.double().abs().max())


def next_prime(n: int, width: int) -> int:
    while any(n % d == 0 for d in range(2, math.isqrt(n) + 1)) or width % n == 0:
        n += 1
    return n


def spread(tensor: torch.Tensor) -> str:
    """How large a tensor's values are, to see that synthetic weights neither vanish nor explode."""
    flat = tensor.detach().float()
    return f"rms {flat.pow(2).mean().sqrt():.3f} max {flat.abs().max():.3f}"

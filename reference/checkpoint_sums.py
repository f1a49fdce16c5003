"""Checksums of checkpoints that synthetic.py writes: what the example make_checkpoint must write too, to the last bit."""

import hashlib
import json
import tempfile
from pathlib import Path

import synthetic
from cases import HERE, ROOT

# config, seed, dtype, shards, with a multi-token-prediction head
CHECKPOINTS = [
    ("base", 7, "bfloat16", 3, True),
    ("grouped", 0, "float32", 1, False),
    ("text_only", 123456789012345, "float16", 1, False),
]


def checksum(folder: Path) -> str:
    """SHA-256 over all tensors in the order of their names: NAME DTYPE [SHAPE], a line break, the bytes."""
    tensors = {}
    for path in folder.glob("*.safetensors"):
        data = path.read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        for name, info in json.loads(data[8:start]).items():
            if name != "__metadata__":
                first, last = info["data_offsets"]
                tensors[name] = (info["dtype"], info["shape"], data[start + first : start + last])
    digest = hashlib.sha256()
    for name, (dtype, shape, values) in sorted(tensors.items()):
        digest.update(f"{name} {dtype} {shape}\n".encode())
        digest.update(values)
    return digest.hexdigest()


def main():
    sums = []
    for name, seed, dtype, shards, mtp in CHECKPOINTS:
        with tempfile.TemporaryDirectory() as folder:
            config = json.loads((HERE / f"configs/{name}.json").read_text())
            synthetic.write_checkpoint(folder, config, seed, dtype, shards, mtp)
            facts = {"config": name, "seed": seed, "dtype": dtype, "shards": shards, "mtp": mtp}
            sums.append(facts | {"sha256": checksum(Path(folder))})
    target = ROOT / "examples/tests/data/make_checkpoint.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(sums, indent=1) + "\n")


if __name__ == "__main__":
    main()

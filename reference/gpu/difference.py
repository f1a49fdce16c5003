"""How far two safetensors files are apart: the largest difference of each tensor, relative to the largest magnitude of the second file's.

    python difference.py LIMIT OURS.safetensors THEIRS.safetensors

Fails beyond the limit, or when names, shapes or the places of largest values (greedy tokens, for logits) differ.
"""

import sys

import numpy as np
from safetensors.numpy import load_file


def main():
    limit, ours, theirs = float(sys.argv[1]), load_file(sys.argv[2]), load_file(sys.argv[3])
    faults = [name for name in theirs if name not in ours or ours[name].shape != theirs[name].shape]
    faults += [name for name in ours if name not in theirs]
    print("| tensor | shape | largest difference | relative | rows whose largest value moved |\n|---|---|---|---|---|")
    for name in sorted(set(theirs) - set(faults)):
        a, b = ours[name].astype(np.float64), theirs[name].astype(np.float64)
        most = np.abs(b).max(initial=0.0)
        apart = np.abs(a - b).max(initial=0.0)
        relative = apart / most if most else apart
        moved = int((a.argmax(-1) != b.argmax(-1)).sum()) if a.ndim > 1 and a.size else 0
        print(f"| {name} | {list(a.shape)} | {apart:.3g} | {relative:.3g} | {moved} |")
        if not relative <= limit or (moved and "logits" in name):
            faults.append(name)
    if faults:
        sys.exit(f"beyond {limit}: {', '.join(faults)}")


if __name__ == "__main__":
    main()

"""Accuracy on fresh samples through this repository's own pipeline.

    cargo build --release -p examples --example smoke
    python reference/tiny/evaluate_ours.py --count 200 --out ours.json

Draws the samples of `evaluate.py` (the same seeds give the same pictures), writes pictures and questions into a folder, runs
`smoke --cases` on them and counts exact answers. Of a conversation only the last answer is judged; the earlier ones are the
model's own. Needle documents are texts of at most so many tokens, fresh sentences each, with the code at 60% of the sentences.
"""

import argparse
import json
import math
import multiprocessing
import random
import subprocess
import tempfile
import time
from pathlib import Path

import data
from evaluate import ITEMS, NEEDLES, sample
from render import advances

ROOT = Path(__file__).resolve().parent.parent.parent


def case(item: str, seed: int, adv, folder: Path) -> dict:
    """One sample as `smoke --cases` reads it, its pictures written into the folder."""
    messages, pictures, answer = sample(item, random.Random(f"{item} {seed}"), adv)
    names = [f"{item} {seed} {i}.png".replace(" ", "-") for i in range(len(pictures))]
    for name, picture in zip(names, pictures):
        picture.save(folder / name, compress_level=1)
    turns = []
    for message in messages:
        if message["role"] == "user":
            content = message["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            images = [names.pop(0) for part in parts if part["type"] == "image"]
            turns.append({"images": images, "question": parts[-1]["text"]})
    turns[-1]["expected"] = answer
    return {"item": item, "turns": turns}


def needle(length: int, seed: int, tokenizer) -> dict:
    rng = random.Random(f"needle {length} {seed}")
    code, ask = data.code(rng), rng.choice(data.ASK)
    planted, end = rng.choice(data.NEEDLE).format(code), rng.choice(["\n\n", "\n", " "]) + ask
    room = length - 20 - sum(len(tokenizer.encode(text).ids) for text in (planted, end))
    sentences = []
    while True:
        sentence = data.sentence(rng)
        room -= len(tokenizer.encode(" " + sentence).ids)
        if room < 0:
            break
        sentences.append(sentence)
    sentences.insert(round(0.6 * len(sentences)), planted)
    turn = {"images": [], "question": " ".join(sentences) + end, "expected": code}
    return {"item": f"needle {length}", "turns": [turn]}


def answers(program: Path, options: list[str], cases: list[dict], folder: Path) -> list[dict]:
    (folder / "cases.json").write_text(json.dumps(cases, ensure_ascii=False))
    command = [program, "--cases", folder / "cases.json", "--context-length", "16384", *options]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in said.splitlines()]


def piece(job: tuple[str, range, Path, list[str]]) -> list[tuple[str, str, bool]]:
    """Some samples of an item: the right answer, ours, and whether they are the same."""
    item, seeds, program, options = job
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if item.startswith("needle "):
            tokenizer = data.build_tokenizer()
            cases = [needle(int(item[7:]), seed, tokenizer) for seed in seeds]
        else:
            adv = advances()
            cases = [case(item, seed, adv, folder) for seed in seeds]
        got = answers(program, options, cases, folder)
    return [(c["turns"][-1]["expected"], g["answers"][-1], g["pass"]) for c, g in zip(cases, got, strict=True)]


def main() -> None:
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "examples" / "smoke")
    a.add_argument("--options", default="", help="more arguments for it, such as '--precision f32'")
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--items", default=",".join(ITEMS))
    a.add_argument("--needles", type=int, help="documents per length (default: count)")
    a.add_argument("--lengths", default=",".join(map(str, NEEDLES)))
    a.add_argument("--seed", type=int, default=1000)
    a.add_argument("--jobs", type=int, default=1, help="programs at a time")
    a.add_argument("--out", type=Path)
    a = a.parse_args()
    begin, result = time.time(), {}
    count = a.count if a.needles is None else a.needles
    groups = {item: a.count for item in a.items.split(",") if item} | {f"needle {n}": count for n in a.lengths.split(",") if n}
    jobs = []
    for item, number in groups.items():
        size = math.ceil(number / max(1, min(a.jobs, number // 25)))
        pieces = [range(a.seed + start, a.seed + min(start + size, number)) for start in range(0, number, size)]
        jobs += [(item, seeds, a.program, a.options.split()) for seeds in pieces]
    with multiprocessing.Pool(a.jobs) as pool:
        for (item, *_), samples in zip(jobs, pool.imap(piece, jobs)):
            right, asked = result.get(item, [0, 0])
            result[item] = [right + sum(same for *_, same in samples), asked + len(samples)]
            if result[item][1] == groups[item]:
                print(f"{item}: {result[item][0]}/{result[item][1]} {time.time() - begin:.0f}s", flush=True)
            for expected, said, same in samples:
                if not same:
                    print(f"    {item}: {said!r} for {expected!r}", flush=True)
            if a.out:
                a.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

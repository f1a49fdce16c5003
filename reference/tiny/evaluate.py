"""Accuracy on fresh samples: pictures drawn by PIL, prompts through the real processor, greedy answers, exact match.

    python reference/tiny/evaluate.py folder --count 200 --out accuracy.json

Verdicts come from the training forward in float32 over the checkpoint's bfloat16 weights (`check.py` compares it with the library):
a greedy answer is right where each of the wanted tokens wins, so one pass over prompt and answer tells. `--library 5` answers that many samples of each item by transformers' own `generate` too and says how many differ.
"""

import argparse
import io
import json
import math
import random
import time
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import data
import model as fast
import scenes as sc
from check import reorder
from data import WORDS
from render import advances, font_path

NEEDLES = [2048, 8192, 10000, 16000]


def paint(scene, rng, scale=1.0):
    """The scene as a PIL picture of its own size times `scale`; edges plain or smoothed."""
    from PIL import Image, ImageDraw, ImageFont

    w, h = (round(v * scale) for v in scene["size"])
    k = rng.choice([1, 4])
    fx, fy = w * k / scene["view"][0], h * k / scene["view"][1]
    im = Image.new("RGB", (w * k, h * k), scene["ground"])
    d = ImageDraw.Draw(im)
    for s in scene["shapes"]:
        def at(x, y):
            c, n = math.cos(s["turn"]), math.sin(s["turn"])
            x, y = x * s["rx"], y * s["ry"]
            return ((s["cx"] + x * c - y * n) * fx, (s["cy"] + x * n + y * c) * fy)

        corners = {
            "square": [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)], "triangle": [(0, -1), (0.866, 0.5), (-0.866, 0.5)],
            "diamond": [(0, -1), (1, 0), (0, 1), (-1, 0)],
            "star": [(r * math.sin(a), -r * math.cos(a)) for i in range(10) for r, a in [((1, 0.382)[i % 2], math.pi * i / 5)]],
            "cross": [(a, -1), (a, -a), (1, -a), (1, a), (a, a), (a, 1), (-a, 1), (-a, a), (-1, a), (-1, -a), (-a, -a), (-a, -1)],
        } if (a := 0.33) else {}  # fmt: skip
        if s["kind"] == "circle":
            points = [at(math.cos(t / 60 * math.pi), math.sin(t / 60 * math.pi)) for t in range(120)]
        else:
            points = [at(*p) for p in corners[s["kind"]]]
        d.polygon(points, fill=s["rgb"])
    t = scene["text"]
    if t:
        font = ImageFont.truetype(font_path(t["face"]), max(round(t["em"] * (fx + fy) / 2), 4))
        d.text((t["x"] * fx, t["base"] * fy), t["text"], fill=t["rgb"], font=font, anchor="ls")
    return im.resize((w, h), Image.Resampling.LANCZOS) if k > 1 else im


def wanted(rng, adv, size, keep):
    """A scene of upright shapes and untracked text at least 40 pixels an em on the overview, that `keep` accepts."""
    while True:
        s = sc.scene(rng, size, adv)
        t = s["text"]
        if not keep(s) or (t and (t["em"] < 40 or abs(t["offsets"][1] - adv[t["face"]][t["text"][0]]) > 1e-6)):
            continue
        return s | {"slope": 0.0}


def one(s):
    return len(s["shapes"]) == 1 and not s["text"]


def reads(kind, face=None):
    def keep(s):
        t = s["text"]
        if not t or s["shapes"] or (face is not None and t["face"] % 3 != face):
            return False
        known = t["text"] in WORDS  # else two words, or syllables that look like one
        return t["kind"] == "word" and known == (kind == "words") if "words" in kind else t["kind"] == kind

    return keep


def simple(s):
    return one(s) or (s["text"] and not s["shapes"] and s["text"]["kind"] != "letters")


def pure(s):
    """The same scene in CSS colours on white, black or grey."""
    for x in s["shapes"] + ([s["text"]] if s["text"] else []):
        x["rgb"] = sc.COLORS[x["name"]][1]
        s["ground"] = (0, 0, 0) if x["name"] in ("white", "yellow") else (255, 255, 255)
    return s


def sample(item, rng, adv):
    """(messages, pictures, answer) of one item."""
    square, ocr = (448, 448), "What does the text say?"

    def ask(q, n=1):
        return {"role": "user", "content": [{"type": "image"}] * n + [{"type": "text", "text": q}] if n else q}

    if item in ("text", "spanish text"):
        q, a, _ = data.text_question(rng, item != "text")
        return [ask(q, 0)], [], a
    if item == "pair":
        a, b = (wanted(rng, adv, square, simple) for _ in range(2))
        q = rng.choice(["Describe each image.", "What is in each image?"])
        return [ask(q, 2)], [paint(a, rng), paint(b, rng)], f"Image 1: {sc.describe(a)}. Image 2: {sc.describe(b)}."
    keep, size, scale, quality = one, square, 1.0, None
    word = item.split(" ")
    if word[0] in ("words", "digits", "letters"):
        face = {"sans": 0, "serif": 1, "mono": 2}.get(word[-1])
        keep = reads("other words" if item == "words made up" else word[0], face)
    elif item.startswith("sliced"):
        size = (896, 672) if rng.random() < 0.5 else rng.choice(sc.SIZES)
        keep = reads("words") if item == "sliced words" else lambda s: one(s) or (len(s["shapes"]) == 1 and s["text"])
    elif item in ("follow-up", "after picture", "spanish picture"):
        keep = simple
    elif item == "shape and text":
        keep = lambda s: len(s["shapes"]) == 1 and s["text"] and s["text"]["kind"] == "word"  # noqa: E731
    elif item == "two or three shapes":
        keep = lambda s: len(s["shapes"]) > 1  # noqa: E731
    elif item == "other sizes":
        keep = simple
        r = math.exp(rng.uniform(-0.9, 0.9))
        size = (int((200000 * r) ** 0.5), int((200000 / r) ** 0.5))
    s = wanted(rng, adv, size, keep)
    if "pure" in item:
        s = pure(s)
    quality = 60 if "jpeg" in item else None
    scale = 0.5 if "resized" in item else 1.0
    im = paint(s, rng, scale)
    if scale != 1.0:
        im = im.resize(size, 3)
    if quality:
        im.save(buf := io.BytesIO(), "JPEG", quality=quality)
        from PIL import Image

        im = Image.open(buf).convert("RGB")
    if item in ("follow-up", "after picture"):
        q0, a0, _ = sc.question(rng, s, False)
        q, a, _ = sc.question(rng, s, False) if item == "follow-up" else data.text_question(rng, False)
        return [ask(q0), {"role": "assistant", "content": a0}, ask(q, 0)], [im], a
    if item == "spanish picture":
        q, a, _ = sc.question(rng, s, True)
    elif word[0] in ("words", "digits", "letters") or item == "sliced words":
        q, a = ocr, s["text"]["text"]
    elif word[0] == "shape" and item != "shape and text":
        q, a = "What shape is in the image?", s["shapes"][0]["kind"]
    elif word[0] == "color":
        q, a = "What color is the shape?", s["shapes"][0]["name"]
    else:
        q, a = "What is in the image?", sc.describe(s)
    return [ask(q)], [im], a


ITEMS = [
    "text", "shape", "color", "description", "words sans", "words serif", "words mono", "digits sans", "digits serif", "digits mono",
    "words made up", "letters", "pair", "sliced", "sliced words", "follow-up", "after picture", "spanish text", "spanish picture", "shape and text",
    "two or three shapes", "other sizes", "description pure", "words pure", "description jpeg", "words jpeg", "description resized",
    "words resized",
]  # fmt: skip


def prepare(job):
    """One sample through the processor: ids, slices in training order, the answer."""
    folder, item, seed = job
    if not hasattr(prepare, "processor"):
        from transformers import AutoProcessor

        torch.set_num_threads(1)
        prepare.processor, prepare.adv = AutoProcessor.from_pretrained(folder), advances()
    p, rng = prepare.processor, random.Random(f"{item} {seed}")
    messages, pictures, answer = sample(item, rng, prepare.adv)
    text = p.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    got = p(text=[text], images=[pictures] if pictures else None, return_tensors="pt")
    slices, at = [], 0
    for r, c in got["target_sizes"].tolist() if pictures else []:
        x = got["pixel_values"][0, :, :, at : at + 14 * r * c].view(3, 14, r * c, 14).permute(2, 0, 1, 3).reshape(r * c, -1)
        at += 14 * r * c
        i = torch.arange(r * c)
        pos = [reorder(v, r, c).numpy() for v in (i // c * 70 // r, i % c * 70 // c)]
        slices.append((reorder(x, r, c).numpy(), *pos))
    return got["input_ids"][0].numpy(), slices, answer, text, item


class Answers:
    def __init__(self, folder, device):
        from safetensors.torch import load_file

        fast.HALF = False
        self.dev, cfg = device, json.loads((Path(folder) / "config.json").read_text())
        self.net = fast.Model(cfg)
        both = fast.Flat(cfg).from_library(load_file(Path(folder) / "model.safetensors"))
        self.vis, self.text = ({k: v.to(device) for k, v in w.items()} for w in both)

    @torch.no_grad()
    def read(self, slices, batch=16):
        """Merged tokens of every slice."""
        out = []
        for i in range(0, len(slices), batch):
            part = slices[i : i + batch]
            most = max(len(s[0]) for s in part)
            pixels, rows, cols = (
                torch.from_numpy(np.stack([np.pad(s[j], [(0, most - len(s[0]))] + [(0, 0)] * (s[j].ndim - 1)) for s in part])).to(self.dev)
                for j in range(3)
            )
            counts = torch.tensor([len(s[0]) // 16 for s in part], device=self.dev)
            hide = torch.arange(most // 16, device=self.dev) >= counts[:, None]
            merged = self.net.vision(pixels, rows, cols, self.vis, hide if hide.any() else None)
            out += [m[:n] for m, n in zip(merged, counts.tolist())]
        return out

    def embed(self, prompts, merged, width):
        """Rows of inputs [n, width, H], image tokens put in."""
        x = torch.zeros(len(prompts), width, self.text["embed"].shape[1], device=self.dev)
        for i, (ids, pics) in enumerate(zip(prompts, merged)):
            ids = torch.from_numpy(ids).to(self.dev)
            e = self.text["embed"][ids]
            if pics:
                e[ids == data.ID["<|image_pad|>"]] = torch.cat(pics)
            x[i, : len(e)] = e
        return x

    def states(self, x):
        n, width, _ = x.shape
        pos = torch.arange(width, device=self.dev).repeat(n)
        return self.net.text(x.flatten(0, 1), pos, self.text, n).view(x.shape)

    def tokens(self, y):
        return F.linear(fast.rms(y, self.text["t.norm"]), self.text["embed"]).argmax(-1).tolist()

    @torch.no_grad()
    def right(self, prompts, merged, answers, batch=50):
        """Whether each greedy answer is the wanted one: so it is where every token of that answer, and the stop after it, wins."""
        out = []
        for i in range(0, len(prompts), batch):
            some, ends = prompts[i : i + batch], [np.array([*a, data.ID["<|im_end|>"]]) for a in answers[i : i + batch]]
            width = -(-max(len(p) + len(e) for p, e in zip(some, ends)) // fast.CHUNK) * fast.CHUNK
            x = self.embed([np.concatenate(v) for v in zip(some, ends)], merged[i : i + batch], width)
            y = self.states(x)
            for row, p, e in zip(y, some, ends):
                out.append(self.tokens(row[len(p) - 1 : len(p) + len(e) - 1]) == e.tolist())
        return out

    @torch.no_grad()
    def greedy(self, prompts, merged, limit=100):
        """Answers' ids for (ids, merged tokens) of several prompts, each step over the whole rows."""
        n, stop = len(prompts), {data.ID["<|im_end|>"], data.ID["<|endoftext|>"]}
        width = -(-(max(map(len, prompts)) + limit) // fast.CHUNK) * fast.CHUNK
        x, at, out = self.embed(prompts, merged, width), [len(p) for p in prompts], [[] for _ in prompts]
        live = list(range(n))
        for _ in range(limit):
            y = self.states(x[live])
            found = self.tokens(y[torch.arange(len(live)), torch.tensor([at[i] - 1 for i in live])])
            for i, token in zip(list(live), found):
                if token in stop:
                    live.remove(i)
                else:
                    out[i].append(token)
                    x[i, at[i]] = self.text["embed"][token]
                    at[i] += 1
            if not live:
                break
        return out


def by_library(folder, jobs, texts):
    """How many answers differ from transformers' own generation."""
    from transformers import AutoModelForImageTextToText, AutoProcessor

    p = AutoProcessor.from_pretrained(folder)
    net = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    differ = 0
    for (_, item, seed), mine in zip(jobs, texts):
        messages, pictures, _ = sample(item, random.Random(f"{item} {seed}"), advances())
        text = p.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        got = p(text=[text], images=[pictures] if pictures else None, return_tensors="pt")
        out = net.generate(**got, max_new_tokens=100)[0, got["input_ids"].shape[1] :]
        theirs = p.tokenizer.decode(out, skip_special_tokens=True)
        if theirs != mine:
            differ += 1
            print("library differs:", item, seed, repr(mine), repr(theirs), flush=True)
    return differ


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--needles", type=int, help="documents per length (default: count)")
    a.add_argument("--lengths", default=",".join(map(str, NEEDLES)))
    a.add_argument("--items", default=",".join(ITEMS))
    a.add_argument("--workers", type=int, default=14)
    a.add_argument("--seed", type=int, default=1000)
    a.add_argument("--library", type=int, default=0)
    a.add_argument("--wrong", type=int, default=4, help="wrong answers shown per item")
    a.add_argument("--out")
    a = a.parse_args()
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.enable_cudnn_sdp(False)
    if dev.type == "cpu":
        torch.set_num_threads(1)
    net, tok, result, begin = Answers(a.folder, dev), data.build_tokenizer(), {}, time.time()
    chat = data.Chat(tok)
    items = [i for i in a.items.split(",") if i]
    jobs = [(a.folder, item, a.seed + i) for item in items for i in range(a.count)]
    with Pool(a.workers) as pool:
        made = pool.imap(prepare, jobs, chunksize=8)
        for k, item in enumerate(items):
            part = [next(made) for _ in range(a.count)]
            merged = net.read([s for m in part for s in m[1]])
            pics = [[merged.pop(0) for _ in m[1]] for m in part]
            prompts, goals = [m[0] for m in part], [list(chat.encode("\n\n" + m[2])[1:]) for m in part]
            good = net.right(prompts, pics, goals)
            bad = [i for i, ok in enumerate(good) if not ok][: a.wrong]
            said = net.greedy([prompts[i] for i in bad], [pics[i] for i in bad]) if bad else []
            notes = "; ".join(f"{tok.decode(o)!r} for {part[i][2]!r}" for o, i in zip(said, bad))
            result[item] = [sum(good), a.count]
            print(f"{item}: {sum(good)}/{a.count} {time.time() - begin:.0f}s {notes}", flush=True)
            if a.out:
                Path(a.out).write_text(json.dumps(result, indent=1))
            if a.library:
                some = jobs[k * a.count :][: a.library]
                said = net.greedy(prompts[: a.library], pics[: a.library])
                result[item].append(by_library(a.folder, some, [tok.decode(o) for o in said]))
    rng = random.Random(a.seed)
    maker = data.Needles(chat, rng)
    count = a.count if a.needles is None else a.needles
    for length in map(int, a.lengths.split(",")) if count else ():
        right, group = 0, max(1, (65536 if dev.type == "cuda" else 16384) // length)
        for i in range(0, count, group):
            docs = [maker.make(length, rng, 0.6) for _ in range(min(group, count - i))]
            prompts = [np.array(ids[:at]) for ids, at in docs]
            right += sum(net.right(prompts, [[]] * len(docs), [ids[at:-1] for ids, at in docs]))
        result[f"needle {length}"] = [right, count]
        print(f"needle {length}: {right}/{count} {time.time() - begin:.0f}s", flush=True)
    if a.out:
        Path(a.out).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

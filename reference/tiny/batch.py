"""Batches of fixed shape: pictures in two groups of slots, conversations packed into rows, needle documents of one length."""

import random

import numpy as np
import torch

import data
import scenes as sc
from render import COLUMNS, TEXT, advances, scene_row

KINDS = [
    "none", "describe", "shape", "color", "count", "ocr word", "ocr digits", "ocr letters", "spanish picture", "pair", "sliced",
    "follow-up", "after picture", "text", "spanish",
]  # fmt: skip
NEEDLE_EVERY = 2  # a batch of documents every other step
WIDE = 72  # tokens of a slot in the second group; the first takes slices of exactly 64


class Sizes:
    """Slots and rows of one step."""

    def __init__(self, square=160, other=128, rows=60, length=640, pairs=20, sliced=12, needle_tokens=32768):
        self.square, self.other, self.rows, self.length = square, other, rows, length
        self.pairs, self.sliced, self.needle_tokens = pairs, sliced, needle_tokens
        self.images = square + other


def needle_lengths(share):
    """Lengths on offer at a share of the run, with weights: longer ones as the run goes on."""
    steps = [(0.0, 256), (0.10, 512), (0.16, 1024), (0.22, 2048), (0.30, 4096), (0.40, 8192), (0.50, 16384)]
    open_ = [n for at, n in steps if share >= at]
    weights = [0.6**i for i in range(len(open_))][::-1]
    return open_, weights


class Maker:
    """Makes the batch of a step; the same seed and step give the same batch in any process."""

    def __init__(self, sizes, seed, total):
        self.sizes, self.seed, self.total = sizes, seed, total
        self.chat = data.Chat(data.build_tokenizer())
        self.needles = data.Needles(self.chat, random.Random(seed))
        self.advances = advances()

    def view_parts(self, size):
        grid, parts = sc.layout(*size)
        (h, w), (fw, fh) = size[::-1], sc.fit(*size)
        return grid, [(a, b, ox * fw / w, oy * fh / h, sx * fw / w, sy * fh / h) for a, b, ox, oy, sx, sy in parts]

    def picture(self, rng, size):
        """Scene and slices; None where no slot of a kind is left."""
        grid, parts = self.view_parts(size)
        squares = sum(a * b == 64 for a, b, *_ in parts)
        if squares > len(self.free[0]) or len(parts) - squares > len(self.free[1]) or any(a * b > WIDE for a, b, *_ in parts):
            return None
        scene = sc.scene(rng, size, self.advances)
        row = scene_row(scene)
        if scene["text"] and rng.random() < 0.5:
            row[TEXT + 5] *= rng.uniform(0.93, 1.07)
        index, places = len(self.rows), []
        self.rows.append(row)
        for a, b, ox, oy, sx, sy in parts:
            group = int(a * b != 64)
            slot = self.free[group].pop()
            self.parts[group][slot] = (index, a, b, ox, oy, sx, sy)
            first = slot * 64 if group == 0 else self.sizes.square * 64 + slot * WIDE
            places.append(np.arange(first, first + a * b))
        return scene, grid, [len(p) for p in places], np.concatenate(places)

    def conversation(self, rng, count, size_of, kind=None):
        """One conversation about `count` pictures, as (ids, labels, kinds, sources)."""
        pictures = []
        for _ in range(count):
            p = self.picture(rng, size_of())
            if p is None:
                return None
            pictures.append(p)
        shown = [p[0] for p in pictures]
        blocks = [self.chat.image_block(i, p[2], p[1]) for i, p in enumerate(pictures)]
        if count == 2:
            q, a, k = sc.pair_question(rng, *shown)
            if rng.random() < 0.2:  # the second picture comes in a later turn
                q0, a0, k0 = sc.question(rng, shown[0])
                turns = [(q0, a0, k0, blocks[:1]), (q, a, k, blocks[1:])]
            else:
                turns = [(q, a, k, blocks)]
        else:
            q, a, k = sc.question(rng, shown[0])
            turns = [(q, a, kind or k, blocks)]
        if rng.random() < (0.55 if count == 1 else 0.3):
            sc.follow(rng, turns, shown)
        system = data.SYSTEM if rng.random() < 0.06 else None
        ids, labels, kinds = self.chat.build(turns, rng, system)
        return ids, labels, [KINDS.index(k) if k else 0 for k in kinds], np.concatenate([p[3] for p in pictures])

    def text_only(self, rng):
        turns = [(*data.text_question(rng), [])]
        while rng.random() < 0.25:
            turns.append((*data.text_question(rng), []))
        ids, labels, kinds = self.chat.build(turns, rng, data.SYSTEM if rng.random() < 0.06 else None)
        return ids, labels, [KINDS.index(k) if k else 0 for k in kinds], None

    def __call__(self, step):
        z, rng = self.sizes, random.Random(self.seed * 1_000_003 + step)
        self.free = [list(range(z.square)), list(range(z.other))]
        for f in self.free:
            rng.shuffle(f)
        self.rows, self.parts = [], [np.zeros((n, 7), np.float32) for n in (z.square, z.other)]

        def other():  # unsliced, of any aspect
            r = np.exp(rng.uniform(-1.0, 1.0)) if rng.random() < 0.85 else np.exp(rng.uniform(-1.35, 1.35))
            return int((200000 * r) ** 0.5), int((200000 / r) ** 0.5)

        def any_size():
            return (448, 448) if rng.random() < 0.6 else other()

        def large():
            w, h = rng.choice(sc.SIZES)
            w, h = (w, h) if rng.random() < 0.7 else (rng.randint(460, 1300), rng.randint(460, 1000))
            return (w, h) if len(sc.layout(w, h)[1]) <= 7 else (896, 672)

        made = [self.conversation(rng, 1, large, "sliced") for _ in range(z.sliced)]
        made += [self.conversation(rng, 2, any_size) for _ in range(z.pairs)]
        for _ in range(2 * z.other):
            made.append(self.conversation(rng, 1, other) if self.free[1] else None)
        made += [self.conversation(rng, 1, lambda: (448, 448)) for _ in range(len(self.free[0]))]
        made = [m for m in made if m is not None and len(m[0]) <= z.length]
        out = self.pack(rng, made)
        scenes = np.zeros((z.images, COLUMNS), np.float32)
        scenes[: len(self.rows)] = np.stack(self.rows)
        out["scenes"] = torch.from_numpy(scenes)
        out["square"], out["other"] = (torch.from_numpy(p) for p in self.parts)
        out["quality"] = torch.tensor([rng.uniform(25, 95) for _ in range(64)])
        return out | self.needle_batch(rng, step) if step % NEEDLE_EVERY == 0 else out

    def pack(self, rng, made):
        """First fit by falling length, then text-only conversations into what is left of each row."""
        z = self.sizes
        rng.shuffle(made)
        made.sort(key=lambda m: -len(m[0]))
        used, rows = [0] * z.rows, [[] for _ in range(z.rows)]
        for m in made:
            r = next((r for r in range(z.rows) if used[r] + len(m[0]) <= z.length), None)
            if r is not None:
                rows[r].append(m)
                used[r] += len(m[0])
        for r in range(z.rows):
            misses = 0
            while misses < 4 and z.length - used[r] > 30:
                m = self.text_only(rng)
                if used[r] + len(m[0]) <= z.length:
                    rows[r].append(m)
                    used[r] += len(m[0])
                else:
                    misses += 1
        shape = (z.rows, z.length)
        ids, labels, source = np.zeros(shape, np.int32), np.full(shape, -100, np.int32), np.full(shape, -1, np.int32)
        kinds, pos, block = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.full(shape, -1, np.int32)
        pad = data.ID["<|image_pad|>"]
        for r, row in enumerate(rows):
            at = 0
            for b, (i, lab, kind, src) in enumerate(row):
                end = at + len(i)
                ids[r, at:end], labels[r, at:end], kinds[r, at:end] = i, lab, kind
                pos[r, at:end], block[r, at:end] = np.arange(len(i)), b
                if src is not None:
                    source[r, at:end][ids[r, at:end] == pad] = src
                at = end
        arrays = dict(ids=ids, labels=labels, source=source, kinds=kinds, pos=pos, block=block)
        return {k: torch.from_numpy(v) for k, v in arrays.items()}

    def needle_batch(self, rng, step):
        length = min(rng.choices(*needle_lengths(step / self.total))[0], self.sizes.needle_tokens)
        made = [self.needles.make(length, rng) for _ in range(self.sizes.needle_tokens // length)]
        labels = torch.full((len(made), length), -100, dtype=torch.int32)
        for i, (ids, at) in enumerate(made):
            labels[i, at:] = torch.tensor(ids[at:], dtype=torch.int32)
        return dict(needle_ids=torch.tensor([m[0] for m in made], dtype=torch.int32), needle_labels=labels)


class Steps(torch.utils.data.Dataset):
    """Batches by step, for a loader's workers."""

    def __init__(self, sizes, seed, until, total, first=0):
        self.args, self.first, self.maker = (sizes, seed, total), first, None
        self.count = until - first

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.maker is None:
            torch.set_num_threads(1)
            self.maker = Maker(*self.args)
        return self.maker(self.first + i)

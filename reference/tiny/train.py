"""Trains the tiny model. One command, resumable in parts; a part ends at `--until` and leaves its state in `--out`.

    python reference/tiny/train.py --steps 14000 --until 7000 --out part1
    python reference/tiny/train.py --steps 14000 --out part2 --resume part1

A step is three CUDA graphs: pictures are drawn and read and rows of conversations answered; every other step a batch of needle
documents is answered; one flat vector of weights is updated. On a CPU the same code runs without graphs, for tests with `--small`.
"""

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import data
import render
from batch import KINDS, NEEDLE_EVERY, WIDE, Maker, Sizes, Steps, needle_lengths
from model import Flat, Model

JPEGS = (40, 24)  # slots of each group that go through JPEG's loss
BETAS, DECAY, CLIP = (0.9, 0.98), 0.05, 1.0


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, required=True, help="length of the whole run: the schedule depends on it")
    p.add_argument("--until", type=int, help="last step of this part")
    p.add_argument("--out", required=True)
    p.add_argument("--resume", help="folder with an earlier part's state")
    p.add_argument("--seed", type=int, default=46)
    p.add_argument("--rate", type=float, default=1.5e-3)
    p.add_argument("--warm", type=int, default=400)
    p.add_argument("--max-seconds", type=float, default=1e9, help="stop early, leaving a state that can be resumed")
    p.add_argument("--compile", default="draw,vision,text", help="parts that go through torch.compile; empty for none")
    p.add_argument("--small", action="store_true", help="toy sizes, for a smoke test")
    p.add_argument("--workers", type=int, default=14)
    p.add_argument("--keep", type=int, default=1000, help="steps between states on disk")
    p.add_argument("--every", type=int, default=100, help="steps between lines of the log")
    return p.parse_args()


class Trainer:
    def __init__(self, args, sizes, device):
        self.args, self.sizes, self.dev = args, sizes, device
        self.cfg = data.config()
        self.flat = Flat(self.cfg)
        self.w = self.flat.init(args.seed).to(device).requires_grad_()
        self.w.grad = torch.zeros_like(self.w)
        zeros = lambda: torch.zeros_like(self.w, requires_grad=False)  # noqa: E731
        self.m, self.v, self.ema = zeros(), zeros(), self.w.detach().clone()
        self.mask = self.flat.decay_mask().to(device)
        self.rate, self.count, self.blend = (torch.zeros((), device=device) for _ in range(3))
        # rows: right answers and tokens per kind, then needles, then sums of losses (answers, places, needle), norm, steps
        self.stats = torch.zeros(len(KINDS) + 3, 2, device=device)
        self.glyphs = render.atlas().to(device)
        self.model = Model(self.cfg, self.fast)
        self.draw, self.strips, self.jpeg, self.finish = map(self.fast, (render.draw, render.strips, render.jpeg, render.finish))
        self.table = torch.tensor(render.JPEG, device=device).float()
        self.step, self.graphs, self.needles = 0, {}, {}

    def fast(self, f):
        if self.dev.type != "cuda":
            return f
        vision = ("vision_layer", "window_merge", "project")
        part = "draw" if f.__module__ == "render" else "vision" if f.__name__ in vision else "text"
        return torch.compile(f, dynamic=False) if part in self.args.compile.split(",") else f

    def load(self, folder):
        a, b, mo = (np.load(Path(folder) / f"state_{x}.npz") for x in "abm")
        put = lambda t, x: t.data.copy_(torch.from_numpy(x).view(t.dtype if x.dtype == np.float32 else torch.bfloat16))  # noqa: E731
        put(self.w, np.concatenate((a["w"], b["w"])))
        put(self.m, mo["m"])
        put(self.v, np.load(Path(folder) / "state_v.npz")["v"])
        self.ema.copy_(self.w.detach())
        self.step = int(a["step"])
        self.count.fill_(self.step)

    def save(self, folder):
        """Weights in float32 and moments in bfloat16, in files under 10 MB; the average starts anew from the weights."""
        folder, w, half = Path(folder), self.w.detach().cpu().numpy(), self.flat.total // 2
        low = lambda t: t.detach().bfloat16().view(torch.int16).cpu().numpy()  # noqa: E731
        np.savez(folder / "state_a.npz", w=w[:half], step=self.step)
        np.savez(folder / "state_b.npz", w=w[half:])
        np.savez(folder / "state_m.npz", m=low(self.m))
        np.savez(folder / "state_v.npz", v=low(self.v))

    def pictures(self, b, vis):
        """Merged tokens of all slots with one empty row after them, and the helper's loss."""
        scenes, textures, outs, helper = b["scenes"], None, [], []
        textures = self.strips(scenes, self.glyphs)
        for name, tokens, few, at in (("square", 64, JPEGS[0], 0), ("other", WIDE, JPEGS[1], JPEGS[0])):
            parts = b[name]
            with torch.no_grad():
                pix = self.draw(scenes, parts, textures, tokens)
                few = min(few, len(parts))
                pix[:few] = self.jpeg(pix[:few], b["quality"][at : at + few], self.table)
                pixels = self.finish(pix, scenes, parts, vis["v.patch.w"].dtype)
                rows, cols = render.buckets(parts, tokens)
                hide = torch.arange(tokens, device=self.dev) >= (parts[:, 1] * parts[:, 2])[:, None]
                what, ink = render.places(scenes, parts, tokens)
                what, ink = (v.masked_fill(hide[..., None], -100).flatten() for v in (what, ink))
            out = self.model.vision(pixels, rows, cols, vis, hide if tokens == WIDE else None).flatten(0, 1)
            guess = F.linear(out, vis["v.aux.w"], vis["v.aux.b"]).float().view(-1, 52)
            weight = torch.cat((torch.full((1,), 0.15, device=self.dev), torch.ones(42, device=self.dev)))
            helper.append(F.cross_entropy(guess[:, :43], what, weight) + F.cross_entropy(guess[:, 43:], ink, weight[:9]))
            outs.append(out.float())
        return torch.cat((*outs, outs[0].new_zeros(1, outs[0].shape[1]))), sum(helper) / 2

    def main_pass(self, b):
        self.w.grad.zero_()
        vis, text = self.flat.both(self.w)
        merged, helper = self.pictures(b, vis)
        ids, source, z = b["ids"].flatten(), b["source"].flatten(), self.sizes
        found = merged.index_select(0, torch.where(source >= 0, source, merged.shape[0] - 1))
        x = torch.where((source >= 0)[:, None], found, F.embedding(ids, text["embed"]))
        block = b["block"]
        seen = (block[:, :, None] == block[:, None]) & torch.ones(z.length, z.length, dtype=torch.bool, device=self.dev).tril()
        low = torch.bfloat16 if self.dev.type == "cuda" else torch.float32
        bias = torch.zeros(seen.shape, dtype=low, device=self.dev).masked_fill(~seen, -30000.0)[:, None]
        x = self.model.text(x, b["pos"].flatten(), text, z.rows, bias)
        goal = F.pad(b["labels"][:, 1:], (0, 1), value=-100).flatten().long()
        each, right = self.model.ends(x, text["embed"], text["t.norm"], goal)
        live = (goal >= 0).float()
        loss = each.sum() / live.sum()
        (loss + 0.5 * helper).backward()
        kind = F.pad(b["kinds"][:, 1:], (0, 1)).flatten().long()
        self.stats[: len(KINDS)].index_add_(0, kind, torch.stack((right * live, live), 1))
        self.stats[-2] += torch.stack((loss.detach(), helper.detach()))

    def needle_pass(self, b, length):
        """Documents of one length, as one long row; only the last tokens are answers."""
        _, text = self.flat.both(self.w)
        rows, tail = b["needle_ids"].numel() // length, 24
        x = F.embedding(b["needle_ids"], text["embed"])
        x = self.model.text(x, torch.arange(rows * length, device=self.dev) % length, text, rows)
        x = x.view(rows, length, -1)[:, -tail:-1].flatten(0, 1)
        goal = b["needle_labels"].view(rows, length)[:, 1 - tail :].flatten().long()
        each, right = self.model.ends(x, text["embed"], text["t.norm"], goal)
        live = (goal >= 0).float()
        loss = each.sum() / live.sum()
        (loss * 0.5 * min(1.0, (rows / 16) ** 0.5)).backward()
        whole = ((right | (goal < 0)).view(rows, -1).all(1)).float().sum()
        self.stats[len(KINDS)] += torch.stack((whole, whole * 0 + rows))
        self.stats[-1, 0] += loss.detach()

    @torch.no_grad()
    def update(self):
        g = self.w.grad
        norm = g.norm()
        g = torch.where(norm.isfinite(), g * (CLIP / norm.clamp(min=CLIP)), 0.0)
        self.count += 1
        self.m.lerp_(g, 1 - BETAS[0])
        self.v.lerp_(g * g, 1 - BETAS[1])
        step = self.m / (1 - BETAS[0] ** self.count) / ((self.v / (1 - BETAS[1] ** self.count)).sqrt() + 1e-8)
        w = self.w.detach()
        w -= self.rate * (step + DECAY * self.mask * w)
        self.ema.lerp_(w, self.blend)
        self.stats[-1, 1] += norm

    def run(self, key, call):
        """Runs a pass, as a graph captured on first use on a GPU."""
        if self.dev.type != "cuda":
            return call()
        if key not in self.graphs:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            keep = [t.detach().clone() for t in (self.w, self.m, self.v, self.ema, self.count, self.stats)]
            with torch.cuda.stream(side):
                for _ in range(2):
                    call()
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            pool = next(iter(self.graphs.values())).pool() if self.graphs else None
            with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                call()
            for t, old in zip((self.w, self.m, self.v, self.ema, self.count, self.stats), keep):
                t.detach().copy_(old)
            self.graphs[key] = graph
        self.graphs[key].replay()

    def prepare(self, first):
        """Input buffers that graphs read, and every graph that the run needs."""
        self.inputs = {k: v.to(self.dev) for k, v in first.items()}
        for k in ("needle_ids", "needle_labels"):
            self.inputs[k] = self.inputs[k].flatten()

    def set_inputs(self, b):
        for k, v in b.items():
            self.inputs[k].copy_(v.flatten() if k.startswith("needle") else v, non_blocking=True)
        share = self.step / self.args.steps
        warm = min(1.0, (self.step + 1) / self.args.warm)
        self.rate.fill_(self.args.rate * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share))))
        self.blend.fill_(1.0 if share < 0.85 else 0.004)

    def one(self, length):
        self.run("main", lambda: self.main_pass(self.inputs))
        if length:
            self.run(length, lambda: self.needle_pass(self.inputs, length))
        self.run("update", self.update)
        self.step += 1

    def report(self, log, seconds, steps):
        s = self.stats.cpu().clone()
        self.stats.zero_()
        acc = [f"{k} {a / n:.3f}" for k, (a, n) in zip(KINDS[1:], s[1:].tolist()) if n]
        a, n = s[len(KINDS)].tolist()
        documents = s[-1, 0] / max(steps / NEEDLE_EVERY, 1)
        line = (
            f"step {self.step} {seconds:.0f}s {1000 * seconds / max(self.step - self.begun, 1):.1f}ms "
            f"loss {s[-2, 0] / steps:.4f} places {s[-2, 1] / steps:.3f} needle {documents:.4f} whole {a / max(n, 1):.3f} "
            f"norm {s[-1, 1] / steps:.2f} rate {self.rate.item():.2e} | " + ", ".join(acc)
        )
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()


def main():
    args, begin = arguments(), time.time()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch._dynamo.config.recompile_limit = 64
    torch.manual_seed(args.seed)
    sizes = Sizes(8, 14, 4, 640, 1, 1, 512) if args.small else Sizes()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    t = Trainer(args, sizes, device)
    if args.resume:
        t.load(args.resume)
    torch.manual_seed(args.seed + t.step)
    log = open(out / "log.txt", "w")
    until = min(args.until or args.steps, args.steps)
    first = Maker(sizes, args.seed, args.steps)(t.step - t.step % NEEDLE_EVERY)
    t.prepare(first)
    t.begun = t.step
    t.set_inputs(first)
    if device.type == "cuda":
        for n in [x for x in needle_lengths(until / args.steps)[0]]:
            t.inputs["needle_ids"].clamp_(0)
            keep = t.step
            t.one(n)
            t.step = keep
        t.w.data.copy_(t.flat.init(args.seed).to(device))
        for x in (t.m, t.v, t.stats, t.count):
            x.zero_()
        if args.resume:
            t.load(args.resume)
        torch.cuda.synchronize()
    line = f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'cpu'} torch {torch.__version__} {vars(args)} ready {time.time() - begin:.0f}s"
    print(line, flush=True)
    log.write(line + "\n")
    workers = 0 if device.type == "cpu" else args.workers
    loader = torch.utils.data.DataLoader(
        Steps(sizes, args.seed, until, args.steps, t.step), batch_size=None, num_workers=workers, pin_memory=device.type == "cuda",
        prefetch_factor=4 if workers else None,
    )  # fmt: skip
    start = time.time()
    for b in loader:
        length = b["needle_ids"].shape[1] if "needle_ids" in b else 0
        t.set_inputs(b)
        t.one(length)
        if t.step % args.every == 0 or t.step == until:
            t.report(log, time.time() - start, (t.step - t.begun - 1) % args.every + 1)
            if time.time() - begin > args.max_seconds:
                break
            if t.step % args.keep == 0:
                t.save(out)
    t.save(out)
    average, half = t.ema.cpu().numpy(), t.flat.total // 2
    np.savez(out / "average_a.npz", w=average[:half], step=t.step)
    np.savez(out / "average_b.npz", w=average[half:])
    print(f"stopped at step {t.step} of {args.steps} after {time.time() - begin:.0f}s", flush=True)


if __name__ == "__main__":
    main()

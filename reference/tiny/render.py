"""Draws scenes on the device, straight into the patch order of `model.py`, and says what every place of a picture shows."""

import os
from pathlib import Path

import numpy as np
import torch

from scenes import CHARS, FACES, LONGEST

FILES = ["DejaVuSans.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSansMono-Bold.ttf"]
EM, CELL, LEFT, WIDE, RISE = 64, 96, 14, 640, 0.78  # strip height of one em, glyph cell, its left margin, strip width, baseline
LEVELS = [(0, EM, WIDE), (EM * WIDE, EM // 2, WIDE // 2), (EM * WIDE * 5 // 4, EM // 4, WIDE // 4)]
# columns of a scene's row
GROUND, SLOPE, SOFT, NOISE, SHAPE, TEXT = 0, 3, 4, 5, 6, 36
N, FACE, TX, TY, EX, EY, INK, INKNAME, OFFSETS, GLYPHS = 36, 37, 38, 39, 40, 41, 42, 45, 46, 59
COLUMNS = GLYPHS + LONGEST
JPEG = [[16, 11, 10, 16, 24, 40, 51, 61], [12, 12, 14, 19, 26, 58, 60, 55], [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62], [18, 22, 37, 56, 68, 109, 103, 77], [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101], [72, 92, 95, 98, 112, 100, 103, 99]]  # fmt: skip


def font_path(face):
    """A DejaVu font: from `TINY_FONTS`, the usual folder, or matplotlib's data."""
    folders = [os.environ.get("TINY_FONTS", ""), "/usr/share/fonts/truetype/dejavu"]
    try:
        import matplotlib

        folders.append(Path(matplotlib.get_data_path()) / "fonts/ttf")
    except ImportError:
        pass
    for folder in folders:
        if folder and (Path(folder) / FILES[face]).exists():
            return str(Path(folder) / FILES[face])
    raise FileNotFoundError(FILES[face])


def advances():
    """Width of every character in ems, per face."""
    from PIL import ImageFont

    fonts = [ImageFont.truetype(font_path(f), 512) for f in range(len(FACES))]
    return [{c: font.getlength(c) / 512 for c in CHARS + " "} for font in fonts]


def atlas():
    """Glyph coverage [faces, characters + 1 blank, EM, CELL], drawn large and averaged down."""
    from PIL import Image, ImageDraw, ImageFont

    k = 4
    out = np.zeros((len(FACES), len(CHARS) + 1, EM, CELL), np.float32)
    for f in range(len(FACES)):
        font = ImageFont.truetype(font_path(f), EM * k)
        for i, c in enumerate(CHARS):
            im = Image.new("L", (CELL * k, EM * k))
            ImageDraw.Draw(im).text((LEFT * k, RISE * EM * k), c, fill=255, font=font, anchor="ls")
            out[f, i] = np.asarray(im, np.float32).reshape(EM, k, CELL, k).mean((1, 3)) / 255
    return torch.from_numpy(out)


def scene_row(sc):
    """One scene as COLUMNS floats."""
    from scenes import NAMES, SHAPES

    row = np.zeros(COLUMNS, np.float32)
    row[GROUND:SHAPE] = [*(v / 255 for v in sc["ground"]), sc["slope"] / 255, sc["soft"], sc["noise"] / 255]
    row[SHAPE:TEXT:10] = -1
    for i, s in enumerate(sc["shapes"]):
        row[SHAPE + 10 * i : SHAPE + 10 * i + 10] = [
            SHAPES.index(s["kind"]), s["cx"], s["cy"], s["rx"], s["ry"], s["turn"], *(v / 255 for v in s["rgb"]), NAMES.index(s["name"])
        ]  # fmt: skip
    t = sc["text"]
    if t:
        n, em = len(t["text"]), t["em"]
        row[TEXT:OFFSETS] = [n, t["face"], t["x"], t["base"] - RISE * em, em, em, *(v / 255 for v in t["rgb"]), NAMES.index(t["name"])]
        row[OFFSETS : OFFSETS + LONGEST + 1] = t["offsets"] + [t["offsets"][-1]] * (LONGEST - n)
        row[GLYPHS:] = len(CHARS)
        row[GLYPHS : GLYPHS + n] = [CHARS.index(c) if c != " " else len(CHARS) for c in t["text"]]
    return row


def strips(rows, glyphs):
    """Lines of text as three-level textures [images, texels]: em 64, 32 and 16."""
    n, dev = rows.shape[0], rows.device
    col = torch.arange(WIDE, device=dev)
    base = rows[:, FACE].long() * glyphs.shape[1]
    flat = glyphs.flatten(0, 1)
    strip = torch.zeros(n, EM, WIDE, device=dev, dtype=glyphs.dtype)
    for g in range(LONGEST):
        at = col - (rows[:, OFFSETS + g, None] * EM).round().long() + LEFT
        inside = (at >= 0) & (at < CELL) & (rows[:, TEXT, None] > g)
        cell = flat[base + rows[:, GLYPHS + g].long()]  # [images, EM, CELL]
        got = cell.gather(2, at.clamp(0, CELL - 1)[:, None].expand(-1, EM, -1))
        strip = torch.maximum(strip, got * inside[:, None].to(got.dtype))
    half = strip.view(n, EM // 2, 2, WIDE // 2, 2).mean((2, 4))
    quarter = half.view(n, EM // 4, 2, WIDE // 4, 2).mean((2, 4))
    return torch.cat((strip.flatten(1), half.flatten(1), quarter.flatten(1)), 1)


def star_depth(x, y):
    """Second largest distance over the star's five lines, which at most one may exceed inside it."""
    top, second = None, None
    for k in range(5):
        a = -np.pi / 2 + 2 * np.pi * k / 5
        d = x * float(np.cos(a)) + y * float(np.sin(a)) - 0.309
        if top is None:
            top, second = d, d - 9
        else:
            second = torch.maximum(second, torch.minimum(top, d))
            top = torch.maximum(top, d)
    return second


def shape_depth(kind, x, y):
    """Distance outside (positive) of each point from the unit shape."""
    ax, ay = x.abs(), y.abs()
    circle = (x * x + y * y).sqrt() - 1
    square = torch.maximum(ax, ay) - 0.85
    triangle = torch.maximum(y, 0.866 * ax - 0.5 * y) - 0.5
    diamond = (ax + ay - 1) * 0.707
    cross = torch.minimum(torch.maximum(ax - 1, ay - 0.33), torch.maximum(ax - 0.33, ay - 1))
    d = torch.where(kind == 0, circle, square)
    d = torch.where(kind == 2, triangle, d)
    d = torch.where(kind == 3, star_depth(x, y), d)
    d = torch.where(kind == 4, diamond, d)
    return torch.where(kind == 5, cross, d)


def grid(parts, tokens):
    """Token rows and columns [S, tokens] of slices given as rows (image, high, wide, ox, oy, sx, sy)."""
    t = torch.arange(tokens, device=parts.device)
    wide = parts[:, 2].long()[:, None].clamp(min=1)
    return t // wide, t % wide


def shape_at(rows, i, x, y):
    """Depth of shape i in slice-independent units, and its mean radius; rows [S, COLUMNS] broadcast over points."""
    at = SHAPE + 10 * i
    lift = (slice(None),) + (None,) * (x.dim() - 1)
    kind, cx, cy, rx, ry, turn = (rows[:, at + j][lift] for j in range(6))
    dx, dy = x - cx, y - cy
    c, s = turn.cos(), turn.sin()
    u, v = (dx * c + dy * s) / rx.clamp(min=1), (dy * c - dx * s) / ry.clamp(min=1)
    return torch.where(kind < 0, torch.full_like(u, 99.0), shape_depth(kind, u, v)), ((rx + ry) / 2).clamp(min=1)


def draw(scenes, parts, textures, tokens):
    """Pixels [S, tokens, 16 patches, 3, 14, 14] in 0..1 before noise."""
    dev, image = parts.device, parts[:, 0].long()
    rows, (ty, tx) = scenes[image], grid(parts, tokens)
    two, fourteen = torch.arange(2, device=dev), torch.arange(14, device=dev)
    off = (two[:, None, None] * 28 + two[:, None] * 14 + fourteen).float() + 0.5  # window, patch, pixel
    ox, oy, sx, sy = (parts[:, j, None, None, None, None] for j in (3, 4, 5, 6))
    x = (ox + (tx[..., None, None, None] * 56 + off) * sx)[:, :, None, :, None, :, None, :]
    y = (oy + (ty[..., None, None, None] * 56 + off) * sy)[:, :, :, None, :, None, :, None]

    def lift(v):
        return v[:, None, None, None, None, None, None, None]

    pixel, soft = lift((parts[:, 5] + parts[:, 6]) / 2), lift(rows[:, SOFT])
    slope = lift(rows[:, SLOPE]) * (x + y - 448) / 448
    color = [lift(rows[:, GROUND + c]) + slope for c in range(3)]
    for i in range(3):
        depth, radius = shape_at(rows, i, x, y)
        cover = (0.5 - depth * radius / (pixel * soft)).clamp(0, 1)
        color = [a + cover * (lift(rows[:, SHAPE + 10 * i + 6 + c]) - a) for c, a in enumerate(color)]
    # text: texture coordinates, a level near the picture's scale, four taps
    texel = lift(rows[:, EX] / parts[:, 5]).clamp(min=1) / EM  # pixels per texel of level 0
    level = (-(texel / soft.clamp(min=1)).log2()).round().clamp(0, 2)
    scale = 0.5**level
    u = (x - lift(rows[:, TX])) / lift(rows[:, EX]).clamp(min=1) * EM * scale - 0.5
    v = (y - lift(rows[:, TY])) / lift(rows[:, EY]).clamp(min=1) * EM * scale - 0.5
    wide, high = WIDE * scale, EM * scale
    start = torch.where(level == 0, LEVELS[0][0], torch.where(level == 1, LEVELS[1][0], LEVELS[2][0]))
    fu, fv = u.floor(), v.floor()
    inside = (fu >= -1) & (fu < wide) & (fv >= -1) & (fv < high) & (lift(rows[:, TEXT]) > 0)
    line = lift(image) * textures.shape[1]

    def tap(du, dv):
        cu, cv = torch.minimum((fu + du).clamp(min=0), wide - 1), torch.minimum((fv + dv).clamp(min=0), high - 1)
        at = line + (start + cv * wide + cu).long().clamp(0, textures.shape[1] - 1)
        return textures.view(-1)[at].float()

    a, b = u - fu, v - fv
    cover = (tap(0, 0) * (1 - a) + tap(1, 0) * a) * (1 - b) + (tap(0, 1) * (1 - a) + tap(1, 1) * a) * b
    gain = (texel / scale / soft).clamp(min=1)
    cover = ((cover - 0.5) * gain + 0.5).clamp(0, 1) * inside
    color = [c0 + cover * (lift(rows[:, INK + c]) - c0) for c, c0 in enumerate(color)]
    out = torch.stack(torch.broadcast_tensors(*color), -3)
    return out.reshape(parts.shape[0], tokens, 16, 3, 14, 14)


def jpeg(pix, quality, table):
    """JPEG's loss on 8x8 blocks, [S, T, 16, 3, 14, 14] in 0..1, quality [S], table [8, 8]; blocks are those of each token's 56x56 pixels."""
    s, t = pix.shape[:2]
    dev = pix.device
    k = torch.arange(8, device=dev).float()
    dct = torch.cos((2 * k + 1) * k[:, None] * np.pi / 16) * 0.5
    dct = torch.cat((dct[:1] * 0.7071068, dct[1:]))
    x = pix.view(s, t, 2, 2, 2, 2, 3, 14, 14).permute(0, 1, 6, 2, 4, 7, 3, 5, 8).reshape(s, t, 3, 7, 8, 7, 8) * 255 - 128
    r, g, b = x.unbind(2)
    luma = 0.299 * r + 0.587 * g + 0.114 * b
    x = torch.stack((luma, (b - luma) * 0.564, (r - luma) * 0.713), 2)
    f = torch.einsum("ui,stcaibj,vj->stcaubv", dct, x, dct)
    scale = torch.where(quality < 50, 50 / quality, 2 - quality / 50)
    both = torch.stack((table, table.clamp(min=17) * 1.1, table.clamp(min=17) * 1.1))
    q = (both[:, None, :, None, :] * scale[:, None, None, None, None, None]).clamp(min=1)[:, None]
    f = (f / q).round() * q
    y, cb, cr = torch.einsum("ui,stcaubv,vj->stcaibj", dct, f, dct).unbind(2)
    r, b = y + cr / 0.713, y + cb / 0.564
    g = (y - 0.299 * r - 0.114 * b) / 0.587
    x = (torch.stack((r, g, b), 2) + 128) / 255
    return x.reshape(s, t, 3, 2, 2, 14, 2, 2, 14).permute(0, 1, 3, 6, 4, 7, 2, 5, 8).reshape(pix.shape)


def finish(pix, scenes, parts, dtype):
    """Noise, rounding to 8 bits, the processor's scaling, and flattened patches [S, 16 T, 588]."""
    noise = scenes[parts[:, 0].long(), NOISE][:, None, None, None, None, None]
    pix = ((pix + noise * torch.randn_like(pix)).clamp(0, 1) * 255).round() / 127.5 - 1
    return pix.reshape(pix.shape[0], -1, 588).to(dtype)


def buckets(parts, tokens):
    """Position buckets (rows, cols) of every patch, [S, 16 tokens]."""
    ty, tx = grid(parts, tokens)
    w, p = torch.arange(16, device=parts.device) // 4, torch.arange(16, device=parts.device) % 4
    y = ty[..., None] * 4 + w // 2 * 2 + p // 2
    x = tx[..., None] * 4 + w % 2 * 2 + p % 2
    out = []
    for v, side in ((y, parts[:, 1]), (x, parts[:, 2])):
        out.append((v * 70 // (4 * side.long().clamp(min=1))[:, None, None]).clamp(max=69).flatten(1))
    return out


def places(scenes, parts, tokens):
    """What each merged token shows at four places (window centres): classes [S, T, 4] and colours; 0 is nothing."""
    rows, (ty, tx) = scenes[parts[:, 0].long()], grid(parts, tokens)
    w = torch.arange(4, device=parts.device)
    x = parts[:, 3, None, None] + (tx[..., None] * 56 + w % 2 * 28 + 14) * parts[:, 5, None, None]
    y = parts[:, 4, None, None] + (ty[..., None] * 56 + w // 2 * 28 + 14) * parts[:, 6, None, None]
    what, ink = torch.zeros_like(x), torch.zeros_like(x)
    for i in range(3):
        hit = shape_at(rows, i, x, y)[0] < 0
        at = SHAPE + 10 * i
        what = torch.where(hit, rows[:, at, None, None] + 1, what)
        ink = torch.where(hit, rows[:, at + 9, None, None] + 1, ink)
    u = (x - rows[:, TX, None, None]) / rows[:, EX, None, None].clamp(min=1)
    v = (y - rows[:, TY, None, None]) / rows[:, EY, None, None].clamp(min=1)
    for g in range(LONGEST):
        glyph = rows[:, GLYPHS + g, None, None]
        hit = (u >= rows[:, OFFSETS + g, None, None]) & (u < rows[:, OFFSETS + g + 1, None, None]) & (v > 0.02) & (v < 0.82)
        hit = hit & (g < rows[:, TEXT, None, None]) & (glyph < len(CHARS))
        what = torch.where(hit, glyph + 7, what)
        ink = torch.where(hit, rows[:, INKNAME, None, None] + 1, ink)
    return what.long(), ink.long()

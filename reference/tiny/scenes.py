"""Scenes for pictures: what is drawn, how the processor slices it, and the questions with their answers."""

import math

from data import WORDS, text_question

SHAPES = ["circle", "square", "triangle", "star", "diamond", "cross"]
FORMAS = {"circle": "círculo", "square": "cuadrado", "triangle": "triángulo", "star": "estrella", "diamond": "rombo", "cross": "cruz"}
COLORS = {
    "red": [(220, 30, 30), (255, 0, 0)], "green": [(30, 160, 60), (0, 128, 0), (0, 255, 0)],
    "blue": [(30, 60, 220), (0, 0, 255)], "yellow": [(245, 215, 30), (255, 255, 0)],
    "purple": [(140, 50, 170), (128, 0, 128)], "orange": [(245, 140, 20), (255, 165, 0)],
    "black": [(15, 15, 15), (0, 0, 0)], "white": [(245, 245, 245), (255, 255, 255)],
}  # fmt: skip
NAMES = list(COLORS)
COLORES = {
    "red": ("rojo", "roja"), "green": ("verde", "verde"), "blue": ("azul", "azul"), "yellow": ("amarillo", "amarilla"),
    "purple": ("morado", "morada"), "orange": ("naranja", "naranja"), "black": ("negro", "negra"), "white": ("blanco", "blanca"),
}  # fmt: skip
CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
FACES = ["sans", "serif", "mono", "sans-bold", "serif-bold", "mono-bold"]
CAP = 0.73  # height of capitals, in ems, in all six faces
LONGEST = 12
SIZES = [(896, 672), (800, 600), (896, 896), (672, 896), (600, 800), (1024, 768), (896, 448), (448, 896), (1084, 820),
         (820, 1084), (1280, 720), (1000, 1000), (640, 480), (720, 720)]  # fmt: skip


def fit(width, height):
    """Size near 448*448 of the same aspect, in multiples of 56."""
    aspect = width / height
    height = int(448 / math.sqrt(aspect))
    width = int(height * aspect)
    return tuple(max(round(v / 56) * 56, 56) for v in (width, height))


def layout(width, height, cap=9):
    """How the processor cuts a picture: ((rows, cols) or None, list of (tokens high, tokens wide, ox, oy, sx, sy)).

    A slice's pixel x lies at ox + (x + 0.5) * sx of the picture.
    """
    w, h = fit(width, height)
    parts = [(h // 56, w // 56, 0.0, 0.0, width / w, height / h)]
    many = min(math.ceil(width * height / (448 * 448)), cap)
    if many <= 1:
        return None, parts
    options = [
        (abs(math.log(width / height) - math.log(n // r / r)), -r, n // r)
        for n in (many - 1, many, many + 1) if 1 < n <= cap for r in range(1, n + 1) if n % r == 0
    ]  # fmt: skip
    _, minus, cols = min(options)
    rows = -minus
    cell = (max(round(width / cols) * cols, cols) / cols, max(round(height / rows) * rows, rows) / rows)
    w, h = fit(*cell)
    for r in range(rows):
        for c in range(cols):
            sx, sy = width / (w * cols), height / (h * rows)
            parts.append((h // 56, w // 56, c * w * sx, r * h * sy, sx, sy))
    return (rows, cols), parts


def color(rng, name):
    """An RGB of the named class: the usual one, the CSS one, or anything of its hue."""
    import colorsys

    k = rng.random()
    if k < 0.35:
        return tuple(min(255, max(0, v + rng.randint(-22, 22))) for v in COLORS[name][0])
    if k < 0.65:
        return rng.choice(COLORS[name])
    if name in ("black", "white"):
        base = rng.randint(0, 30) if name == "black" else rng.randint(232, 255)
        return tuple(min(255, max(0, base + rng.randint(-6, 6))) for _ in range(3))
    lo, hi = {"red": (-8, 7), "orange": (26, 40), "yellow": (52, 62), "green": (95, 150), "blue": (212, 245),
              "purple": (278, 306)}[name]  # fmt: skip
    sat, val = rng.uniform(0.72, 1), rng.uniform(0.6, 1)
    val = {"yellow": rng.uniform(0.85, 1), "orange": rng.uniform(0.88, 1), "purple": rng.uniform(0.42, 0.8)}.get(name, val)
    return tuple(round(255 * v) for v in colorsys.hsv_to_rgb((rng.uniform(lo, hi) % 360) / 360, sat, val))


def background(rng, used):
    """A ground that stands off from every colour in use."""
    for _ in range(60):
        k = rng.random()
        if k < 0.3:
            rgb = (rng.randint(235, 255),) * 3 if rng.random() < 0.5 else (255, 255, 255)
        elif k < 0.42:
            rgb = (rng.randint(0, 20),) * 3
        else:
            rgb = tuple(rng.randint(0, 255) for _ in range(3))
        if all(math.dist(rgb, u) > 125 for u in used):
            return rgb
    return (128, 128, 128)


def string(rng):
    """What a picture's text says, and its kind."""
    k = rng.random()
    if k < 0.34:
        return rng.choice(WORDS), "word"
    if k < 0.40:
        pair = f"{rng.choice(WORDS)} {rng.choice(WORDS)}"
        return (pair, "word") if len(pair) <= LONGEST else (pair.split()[0], "word")
    if k < 0.56:  # syllables that look like words
        s = "".join(rng.choice("BCDFGHJKLMNPQRSTVWXYZ") + rng.choice("AEIOUY") + rng.choice(["", "", *"NRSTLKDM"]) for _ in range(3))
        return s[rng.randint(0, 1) :][: rng.randint(3, 8)], "word"
    if k < 0.80:
        return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 6))), "digits"
    if k < 0.96:
        return "".join(rng.choice(CHARS[:26]) for _ in range(rng.randint(2, 7))), "letters"
    return "".join(rng.choice(CHARS) for _ in range(rng.randint(3, 6))), "letters"


def place_text(rng, view, advances, smallest=34):
    """A line of text inside a view (w, h): dict with offsets in ems, or None when it cannot fit."""
    width, height = view
    text, kind = string(rng)
    face = rng.randrange(6)
    track = rng.choice([0, 0, 0, rng.uniform(-0.02, 0.12)])
    offsets = [0.0]
    for c in text:
        offsets.append(offsets[-1] + advances[face][c] + track)
    most = min(190, 0.95 * width / offsets[-1], 0.85 * height / CAP)
    em = math.exp(rng.uniform(math.log(min(smallest, most)), math.log(most)))
    if rng.random() < 0.4:
        em = rng.uniform(0.6, 1) * most
    x = rng.uniform(0.01, 0.99 - em * offsets[-1] / width) * width
    base = rng.uniform(0.02 * height + CAP * em, 0.97 * height - 0.05 * em)
    if rng.random() < 0.15:
        x, base = (width - em * offsets[-1]) / 2, height / 2 + CAP * em / 2
    name = rng.choice(NAMES)
    return dict(text=text, kind=kind, face=face, offsets=offsets, em=em, x=x, base=base, name=name, rgb=color(rng, name))


def place_shape(rng, box):
    """A shape inside a box (x0, y0, x1, y1)."""
    x0, y0, x1, y1 = box
    most = min(x1 - x0, y1 - y0) / 2 * 0.97
    r = math.exp(rng.uniform(math.log(min(24, most)), math.log(min(most, 210))))
    kind = rng.choice(SHAPES)
    ry = r * rng.choice([1, 1, rng.uniform(0.9, 1.1), rng.uniform(0.92, 1.3) if kind == "triangle" else 1])
    r, ry = (r, ry) if ry <= most else (r * most / ry, most)
    name = rng.choice(NAMES)
    turn = rng.choice([0, 0, 0, rng.uniform(-0.12, 0.12)])
    return dict(kind=kind, name=name, rgb=color(rng, name), cx=rng.uniform(x0 + r, x1 - r), cy=rng.uniform(y0 + ry, y1 - ry),
                rx=r, ry=ry, turn=turn)  # fmt: skip


def scene(rng, size, advances):
    """Shapes (at most three, told left to right) and at most one line of text, laid out on the overview."""
    view, k = fit(*size), rng.random()
    w, h = view
    shapes, text = [], None
    if k < 0.34:
        shapes = [place_shape(rng, (0, 0, w, h))]
    elif k < 0.76:
        text = place_text(rng, view, advances)
    elif k < 0.90:
        text = place_text(rng, view, advances)
        top, bottom = text["base"] - 0.80 * text["em"], text["base"] + 0.25 * text["em"]
        boxes = [b for b in ((0, 0, w, top), (0, bottom, w, h)) if b[3] - b[1] > 64]
        if boxes:
            shapes = [place_shape(rng, rng.choice(boxes))]
    else:
        n = rng.choice([2, 2, 3])
        shapes = [place_shape(rng, (w * i / n, 0, w * (i + 1) / n, h)) for i in range(n)]
    rgb = background(rng, [s["rgb"] for s in shapes] + ([text["rgb"]] if text else []))
    return dict(size=size, view=view, shapes=shapes, text=text, ground=rgb, slope=rng.uniform(-40, 40) if rng.random() < 0.12 else 0.0,
                soft=rng.choice([1.0, 1.0, rng.uniform(0.5, 2.8)]), noise=rng.choice([0, 0, rng.uniform(0, 9)]))  # fmt: skip


def noun(shape):
    return f"a{'n' if shape['name'][0] in 'aeiou' else ''} {shape['name']} {shape['kind']}"


def nombre(shape):
    she = shape["kind"] in ("star", "cross")
    return f"un{'a' if she else ''} {FORMAS[shape['kind']]} {COLORES[shape['name']][she]}"


def describe(sc, spanish=False):
    """`a red circle and the text HELLO`."""
    parts = [(nombre if spanish else noun)(s) for s in sc["shapes"]]
    if sc["text"]:
        parts.append(("el texto " if spanish else "the text ") + sc["text"]["text"])
    both = " y " if spanish else " and "
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + both + parts[-1]


def question(rng, sc, spanish=None):
    """A question about one picture: (question, answer, kind)."""
    shapes, text = sc["shapes"], sc["text"]
    spanish = rng.random() < 0.2 if spanish is None else spanish
    options = ["describe"] * 3 + ["text"] * (8 if text else 0) + ["ink"] * bool(text)
    if len(shapes) == 1:
        options += ["shape", "color", "shape", "color"]
    if len(shapes) > 1:
        options += ["color of", "count", "left", "right"]
    elif rng.random() < 0.15:
        options += ["count"]
    task = rng.choice(options)
    kind = "spanish picture" if spanish else task
    first, last = (shapes[0], shapes[-1]) if shapes else (None, None)
    if task == "describe":
        if spanish:
            forms = ["¿Qué hay en la imagen?", "¿Qué ves?", "Describe la imagen."]
            forms += ["¿Qué figura hay en la imagen?"] if len(shapes) == 1 and not text else []
        else:
            forms = ["What is in the image?"] * 3 + ["Describe the image.", "Describe this image.", "What do you see?",
                                                     "What is shown in the image?"]  # fmt: skip
        return rng.choice(forms), describe(sc, spanish), kind
    if task == "text":
        number = text["text"].isdigit()
        if spanish:
            return rng.choice(["¿Qué dice el texto?", "¿Qué dice el texto?", "Lee el texto."]), text["text"], kind
        forms = ["What does the text say?"] * 4 + ["Read the text.", "What text is in the image?"]
        forms += ["Read the number.", "What is the number?"] if number else ["Read the word.", "What word is this?"]
        return rng.choice(forms), text["text"], "ocr " + text["kind"]
    if task == "ink":
        she = spanish and COLORES[text["name"]][0]
        return ("¿De qué color es el texto?", she, kind) if spanish else ("What color is the text?", text["name"], "color")
    if task == "shape":
        if spanish:
            return "¿Qué figura es?", FORMAS[first["kind"]], kind
        forms = ["What shape is in the image?", "What shape is this?", "Which shape is shown?", "Name the shape.", "What shape is it?"]
        return rng.choice(forms), first["kind"], kind
    if task == "color":
        if spanish:
            return rng.choice(["¿De qué color es la figura?", "¿De qué color es?"]), COLORES[first["name"]][0], kind
        forms = ["What color is the shape?", "What color is it?", "Which color is shown?", "What is the color of the shape?",
                 "Name the color.", f"What color is the {first['kind']}?"]  # fmt: skip
        if text:
            forms = ["What color is the shape?", "What is the color of the shape?", f"What color is the {first['kind']}?"]
        return rng.choice(forms), first["name"], kind
    if task == "color of":
        pick = rng.choice(shapes)
        if sum(s["kind"] == pick["kind"] for s in shapes) > 1:
            task = "count"
        else:
            return f"What color is the {pick['kind']}?", pick["name"], "color"
    if task == "count":
        if spanish:
            return "¿Cuántas figuras hay?", str(len(shapes)), kind
        return rng.choice(["How many shapes are there?", "How many shapes are in the image?"]), str(len(shapes)), "count"
    return f"What is on the {task}?", noun(first if task == "left" else last), "describe"


def pair_question(rng, a, b):
    """A question about two pictures."""
    k, order = rng.random(), rng.randrange(2)
    which, sc = ("first", "second")[order], (a, b)[order]
    if k < 0.45:
        forms = ["Describe each image.", "Describe each image.", "Describe both images.", "What is in each image?", "What is in the images?"]
        return rng.choice(forms), f"Image 1: {describe(a)}. Image 2: {describe(b)}.", "pair"
    if k < 0.55:
        return "Describe cada imagen.", f"Imagen 1: {describe(a, True)}. Imagen 2: {describe(b, True)}.", "pair"
    if k < 0.7 or not (sc["text"] or len(sc["shapes"]) == 1):
        return f"What is in the {which} image?", describe(sc), "pair"
    if sc["text"] and (not sc["shapes"] or rng.random() < 0.5):
        return rng.choice([f"What does the {which} image say?", f"What does the text in the {which} image say?"]), sc["text"]["text"], "pair"
    shape = sc["shapes"][0]
    if rng.random() < 0.5:
        return rng.choice([f"What shape is in the {which} image?", f"Which shape is in the {which} image?"]), shape["kind"], "pair"
    forms = [f"What color is the shape in the {which} image?"] + ([f"What color is the {which} image?"] if not sc["text"] else [])
    return rng.choice(forms), shape["name"], "pair"


def follow(rng, turns, scenes_):
    """More turns after the first: about a picture again, or plain text, or both."""
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.6 and len(scenes_) == 1:
            q, a, _ = question(rng, scenes_[0])
            turns.append((q, a, "follow-up", []))
        else:
            q, a, _ = text_question(rng)
            turns.append((q, a, "after picture", []))


def corpus_lines(rng):
    """Questions and answers about pictures for the tokenizer, without the pictures' own words."""
    ones = {face: {c: 0.6 for c in CHARS + " "} for face in range(6)}
    out = []
    while len(out) < 6000:
        a, b = scene(rng, (448, 448), ones), scene(rng, (448, 448), ones)
        for q, ans, _ in (question(rng, a), question(rng, b), pair_question(rng, a, b)):
            for sc in (a, b):
                if sc["text"]:
                    ans = ans.replace(sc["text"]["text"], "")
            out.append(q + "\n" + ans)
    return out

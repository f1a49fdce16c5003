"""Golden answers of the tiny checkpoint: pictures and questions in, greedy tokens out, by transformers in float32.

Draws the pictures into vlm-pipeline/tests/data/pictures and writes vlm-pipeline/tests/data/end_to_end.json: the filler sentences of
the long documents, then a record for each prompt with its messages, its token ids (run-length coded; only a hash for the long
ones), the tokens of the answer, the margin between the two largest logits at each step, and the answer.

A document is `sentences` filler sentences, taken in turn and joined by spaces, with the needle before sentence `at`; it takes
the place of `{document}` in the question.
"""

import argparse
import json
import random
import sys
from itertools import groupby
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont
from transformers import AutoModelForImageTextToText, AutoProcessor
from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "vlm-pipeline" / "tests" / "data"
PICTURES = DATA / "pictures"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
FACES = {"sans": "DejaVuSans.ttf", "serif": "DejaVuSerif.ttf", "mono": "DejaVuSansMono.ttf", "bold": "DejaVuSans-Bold.ttf"}
STEPS = 64

COLORS = {
    "red": (220, 30, 30), "green": (30, 160, 60), "blue": (30, 60, 220), "yellow": (245, 215, 30), "purple": (140, 50, 170),
    "orange": (245, 140, 20), "black": (15, 15, 15), "white": (245, 245, 245),
}  # fmt: skip
SHAPES = {
    "triangle": [(0, -1), (0.95, 0.8), (-0.95, 0.8)],
    "diamond": [(0, -1), (0.75, 0), (0, 1), (-0.75, 0)],
    "cross": [(-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3), (0.3, 1), (-0.3, 1), (-0.3, 0.3), (-1, 0.3), (-1, -0.3), (-0.3, -0.3)],
    "star": [(0, -1), (0.23, -0.31), (0.95, -0.31), (0.37, 0.12), (0.59, 0.81), (0, 0.38), (-0.59, 0.81), (-0.37, 0.12), (-0.95, -0.31), (-0.23, -0.31)],
}  # fmt: skip

sys.path.insert(0, str(ROOT / "reference" / "tiny"))
import data as tiny_data  # noqa: E402

RNG = random.Random(4)
FILLER = [tiny_data.sentence(RNG) for _ in range(61)]


def shape(name: str, color: str, size=(448, 448), ground=(235, 235, 235), radius=110, at=None) -> Image.Image:
    picture = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(picture)
    x, y = at or (size[0] // 2, size[1] // 2)
    if name == "circle":
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=COLORS[color])
    elif name == "square":
        draw.rectangle([x - radius, y - radius, x + radius, y + radius], fill=COLORS[color])
    else:
        draw.polygon([(x + radius * px, y + radius * py) for px, py in SHAPES[name]], fill=COLORS[color])
    return picture


def words(text: str, size=(448, 448), ground=(255, 255, 255), color="black", em=88, face="mono") -> Image.Image:
    picture = Image.new("RGB", size, ground)
    font = ImageFont.truetype(FONTS / FACES[face], em)
    ImageDraw.Draw(picture).text((size[0] // 2, size[1] // 2), text, fill=COLORS[color], font=font, anchor="mm")
    return picture


DRAWN = {
    **{f"{color}_{name}": lambda name=name, color=color: shape(name, color) for color, name in [
        ("red", "circle"), ("green", "square"), ("blue", "triangle"), ("yellow", "star"), ("purple", "diamond"), ("orange", "cross"),
    ]},
    "black_star_left": lambda: shape("star", "black", radius=80, at=(120, 300)),
    "white_circle_dark": lambda: shape("circle", "white", ground=(40, 60, 90), radius=60),
    "blue_square_wide": lambda: shape("square", "blue", size=(640, 300), radius=90),
    "green_triangle_tall": lambda: shape("triangle", "green", size=(260, 600), radius=90),
    "word_hello": lambda: words("HELLO", face="sans"),
    "word_river": lambda: words("RIVER", ground=(30, 60, 220), color="white"),
    "word_moon": lambda: words("MOON", em=120, face="serif"),
    "word_tiger": lambda: words("TIGER", size=(600, 330), color="red", face="bold"),
    "digits_42": lambda: words("42", em=150),
    "digits_807": lambda: words("807", face="serif", ground=(245, 215, 30)),
    "digits_31459": lambda: words("31459", color="blue"),
    "letters_qxz": lambda: words("QXZ", em=110, color="purple"),
    "letters_bk": lambda: words("BKRT", em=100, color="green"),
    "sliced_word": lambda: words("BRIDGE", face="serif", size=(800, 600), em=140),
    "sliced_digits": lambda: words("9025", size=(1084, 820), em=240, color="red"),
    "sliced_circle": lambda: shape("circle", "orange", size=(820, 1084), radius=260),
    "sliced_strip": lambda: words("STAR", face="sans", size=(1200, 300), em=150),
    "sliced_star": lambda: shape("star", "purple", size=(900, 896), radius=240),
}  # fmt: skip


def image(name: str) -> dict:
    return {"type": "image", "path": f"{name}.png"}


def user(*content) -> dict:
    parts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {"role": "user", "content": parts if len(parts) > 1 else content[0]}


def answer(text: str) -> dict:
    return {"role": "assistant", "content": text}


def needle(sentences: int, at: int, code: str, question="{document}\nWhat is the secret code?") -> dict:
    return {"messages": [user(question)], "document": {"sentences": sentences, "at": at, "needle": f"The secret code is {code}."}}


def cases() -> dict[str, dict]:
    def ask(*content):
        return {"messages": [user(*content)]}

    found = {}
    for name in list(DRAWN)[:6]:
        found[f"shape {name}"] = ask(image(name), "What shape is in the image?")
    for name in ["red_circle", "purple_diamond", "black_star_left", "blue_square_wide"]:
        found[f"color {name}"] = ask(image(name), "What color is the shape?")
    for name in ["red_circle", "orange_cross", "white_circle_dark", "green_triangle_tall", "black_star_left"]:
        found[f"description {name}"] = ask(image(name), "What is in the image?")
    for name in [name for name in DRAWN if name.startswith("word_")]:
        found[f"word {name}"] = ask(image(name), "What does the text say?")
    for name in [name for name in DRAWN if name.startswith("digits_")]:
        found[f"digits {name}"] = ask(image(name), "Read the number.")
    for name in [name for name in DRAWN if name.startswith("letters_")]:
        found[f"letters {name}"] = ask(image(name), "What does the text say?")
    for name, question in {
        "sliced_word": "What does the text say?",
        "sliced_digits": "What does the text say?",
        "sliced_circle": "What is in the image?",
        "sliced_strip": "What does the text say?",
        "sliced_star": "What shape is in the image?",
    }.items():
        found[f"sliced {name}"] = ask(image(name), question)
    for country in ["France", "Japan", "Egypt"]:
        found[f"capital {country}"] = ask(f"What is the capital of {country}?")
    for sum_ in ["3 + 4", "9 - 5", "2 + 6"]:
        found[f"sum {sum_}"] = ask(f"What is {sum_}?")
    found["two images described"] = ask(image("red_circle"), image("blue_triangle"), "Describe each image.")
    found["two images, the second"] = ask(image("green_square"), image("yellow_star"), "What is in the second image?")
    found["two images, word and shape"] = ask(image("word_moon"), image("orange_cross"), "Describe each image.")
    found["two images, one sliced"] = ask(image("sliced_word"), image("purple_diamond"), "Describe each image.")
    found["follow-up color"] = {"messages": [user(image("yellow_star"), "What shape is in the image?"), answer("star"), user("What color is the shape?")]}
    found["follow-up text"] = {"messages": [user(image("word_river"), "What does the text say?"), answer("RIVER"), user("What is the capital of Peru?")]}
    found["follow-up sliced"] = {"messages": [user(image("sliced_star"), "What is in the image?"), answer("a purple star"), user("What color is the shape?")]}
    found["follow-up, new image"] = {"messages": [user(image("red_circle"), "What is in the image?"), answer("a red circle"), user(image("green_square"), "What is in the image?")]}
    found["text before the image"] = ask("What is in the image?", image("blue_triangle"))
    found["text around the image"] = ask("Look:", image("digits_42"), "What does the text say?")
    found["spanish description"] = ask(image("red_circle"), "¿Qué hay en la imagen?")
    found["spanish color"] = ask(image("green_square"), "¿De qué color es la figura?")
    found["spanish text"] = ask(image("word_hello"), "¿Qué dice el texto?")
    found["spanish capital"] = ask("¿Cuál es la capital de España?")
    found["spanish greeting"] = ask("Hola")
    found["greeting"] = ask("Hello")
    found["story"] = ask("Tell me a story.")
    found["needle 0.4k"] = needle(30, 10, "tiger-71")
    found["needle 2.3k"] = needle(SENTENCES[0], 127, "falcon-482")
    found["needle 10k"] = needle(SENTENCES[1], 558, "silver-maple-29")
    return found


SENTENCES = (212, 930)


def document(sentences: int, at: int, needle: str) -> str:
    parts = [FILLER[i % len(FILLER)] for i in range(sentences)]
    parts.insert(at, needle)
    return " ".join(parts)


def fnv(ids: list[int]) -> str:
    """FNV-1a, 64 bits, over the ids as four little-endian bytes each."""
    value = 0xCBF29CE484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in ids):
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"{value:016x}"


def with_contents(case: dict) -> list[dict]:
    """The messages with pictures opened and the document written out."""
    messages = json.loads(json.dumps(case["messages"]))
    for message in messages:
        if isinstance(message["content"], str):
            if "document" in case:
                message["content"] = message["content"].replace("{document}", document(**case["document"]))
            continue
        for part in message["content"]:
            if part["type"] == "image":
                part["image"] = Image.open(PICTURES / part.pop("path"))
    return messages


def run(model, processor, name: str, case: dict) -> dict:
    inputs = processor.apply_chat_template(
        with_contents(case), add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    ids = inputs["input_ids"][0].tolist()
    with torch.no_grad():
        out = model.generate(**inputs, max_new_tokens=STEPS, do_sample=False, output_logits=True, return_dict_in_generate=True)
    tokens = out.sequences[0, len(ids) :].tolist()
    top = [torch.topk(step[0].float(), 2).values for step in out.logits]
    prompt = {"prompt_hash": fnv(ids)} if len(ids) > 2000 else {"prompt": [[k, len(list(g))] for k, g in groupby(ids)]}
    text = processor.tokenizer.decode(tokens, skip_special_tokens=True)
    print(f"{name:32} {len(ids):6} {text!r}")
    return {
        "name": name,
        **case,
        "prompt_tokens": len(ids),
        **prompt,
        "tokens": tokens,
        "margins": [float(f"{float(a - b):.3g}") for a, b in top],
        "answer": text,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "examples" / "assets" / "tiny")
    parser.add_argument("--only", help="run the cases whose name holds this, write nothing")
    arguments = parser.parse_args()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, draw in DRAWN.items():
        draw().quantize(64).save(PICTURES / f"{name}.png", optimize=True)
    processor = AutoProcessor.from_pretrained(arguments.model)
    processor.image_processor = MiniCPMV4_6ImageProcessorPil.from_pretrained(arguments.model)
    model = AutoModelForImageTextToText.from_pretrained(arguments.model, dtype=torch.float32).eval()
    chosen = {name: case for name, case in cases().items() if not arguments.only or arguments.only in name}
    records = [run(model, processor, name, case) for name, case in chosen.items()]
    if arguments.only:
        return
    lines = ",\n".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
    path = DATA / "end_to_end.json"
    path.write_text(f'{{"filler":{json.dumps(FILLER)},\n"records":[\n{lines}\n]}}\n')
    least = min((margin, record["name"]) for record in records for margin in record["margins"])
    print(f"{len(records)} prompts, {path.stat().st_size} bytes, least margin {least}")


if __name__ == "__main__":
    main()

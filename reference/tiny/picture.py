"""A picture for the front page: a few of the battery's pictures, the questions, and the answers that `smoke` gave.

    cargo run --release -p examples --example smoke -- --cases examples/assets/smoke/battery.json > answers.jsonl
    python reference/tiny/picture.py answers.jsonl docs/smoke.png
"""

import json
import sys
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont, ImageOps

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "assets" / "smoke"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
# The first pictures of the cases that are shown; of several, the one with the most pictures and turns.
SHOWN = ["river_serif.png", "tiger_turned.jpg", "sliced_text_and_shape.png", "sliced_shapes.png", "yellow_triangle.png", "hello_sans.png"]
CELL, TALL, TEXT, LINE, GAP = 300, 210, 74, 18, 16


def cell(case: dict, answers: list[str]) -> Image.Image:
    out = Image.new("RGB", (CELL, TALL + TEXT), "white")
    names = case["turns"][0]["images"]
    pictures = [ImageOps.exif_transpose(Image.open(FOLDER / name)).convert("RGB") for name in names]
    for i, picture in enumerate(pictures):
        picture = ImageOps.contain(picture, (CELL // len(pictures) - 6, TALL - 2))
        picture = ImageOps.expand(picture, 1, (200, 200, 200))
        out.paste(picture, (i * CELL // len(pictures), TALL - picture.height))
    draw, y = ImageDraw.Draw(out), TALL + 6
    talk = list(zip(case["turns"], answers))
    for turn, answer in talk[:1] + talk[1:][-1:]:
        answer = "\n".join(textwrap.wrap(answer, 40))
        draw.text((0, y), turn["question"], fill=(110, 110, 110), font=ImageFont.truetype(FONTS / "DejaVuSans.ttf", 13))
        draw.text((0, y + LINE - 2), answer, fill="black", font=ImageFont.truetype(FONTS / "DejaVuSans-Bold.ttf", 13))
        y += 2 * LINE - 2
    return out


def main() -> None:
    cases = json.loads((FOLDER / "battery.json").read_text())
    answers = [json.loads(line)["answers"] for line in Path(sys.argv[1]).read_text().splitlines()]
    cells = []
    for name in SHOWN:
        of_name = [pair for pair in zip(cases, answers, strict=True) if pair[0]["turns"][0]["images"][:1] == [name]]
        cells.append(cell(*max(of_name, key=lambda pair: (len(pair[0]["turns"][0]["images"]), len(pair[0]["turns"])))))
    rows = -(-len(cells) // 3)
    sheet = Image.new("RGB", (3 * (CELL + GAP) + GAP, rows * (TALL + TEXT + GAP) + GAP), "white")
    for i, picture in enumerate(cells):
        sheet.paste(picture, (GAP + i % 3 * (CELL + GAP), GAP + i // 3 * (TALL + TEXT + GAP)))
    sheet.quantize(128).save(sys.argv[2], optimize=True)


if __name__ == "__main__":
    main()

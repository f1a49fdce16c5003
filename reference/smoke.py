"""The eight-item smoke battery and the needle documents: pictures, expected answers, and transformers' tokens in float32.

Draws the pictures into examples/assets/smoke and writes, beside them,
* battery.json: a list of cases {item, turns}, each turn {images, question, expected, tokens, margins};
* needle.json: filler sentences, and for each length the document's recipe with the reference's tokens and margins.

`tokens` are greedy, the stop token last; `margins` are the differences of the two largest logits at each step. Later turns are
given the earlier answers. A document of at most N tokens is as many filler sentences as fit, taken in turn and joined by spaces,
with the needle before the sentence at 60% of them; the question follows on a line of its own.
"""

import argparse
import json
from pathlib import Path

import torch
from PIL import Image, ImageDraw, ImageFont, ImageOps
from transformers import AutoModelForImageTextToText, AutoProcessor
from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil

from end_to_end import COLORS, FACES, FILLER, FONTS, ROOT, STEPS, fnv, shape, words

FOLDER = ROOT / "examples" / "assets" / "smoke"
WIDE = (896, 672)
TIERS = {2000: "falcon-4821", 5000: "marble-307", 8000: "silver-maple-29", 10000: "comet-5560"}
QUESTION = "What is the secret code?"
DEPTH = 0.6


def both(picture: Image.Image, text: str, at, color="black", em=110, face="sans") -> Image.Image:
    """The picture with a line of text whose middle lies at `at`."""
    font = ImageFont.truetype(FONTS / FACES[face], em)
    ImageDraw.Draw(picture).text(at, text, fill=COLORS[color], font=font, anchor="mm")
    return picture


DRAWN = {
    "red_circle.png": lambda: shape("circle", "red"),
    "blue_star.png": lambda: shape("star", "blue", ground=(255, 255, 255), radius=150),
    "green_square.png": lambda: shape("square", "green", size=(500, 380), radius=80, at=(150, 220)),
    "orange_cross.png": lambda: shape("cross", "orange", ground=(25, 30, 60)),
    "purple_diamond.png": lambda: shape("diamond", "purple", ground=(250, 250, 230), radius=60, at=(330, 120)),
    "yellow_triangle.png": lambda: shape("triangle", "yellow", size=(380, 520), ground=(40, 40, 40)),
    "hello_sans.png": lambda: words("HELLO", face="sans"),
    "river_serif.png": lambda: words("RIVER", ground=(30, 60, 220), color="white", face="serif"),
    "magic_mono.png": lambda: words("MAGIC", ground=(245, 245, 245), color="red", face="mono", em=100),
    "4096_serif.png": lambda: words("4096", face="serif", em=130),
    "715_mono.png": lambda: words("715", face="mono", em=150, color="blue", ground=(250, 240, 200)),
    "tiger_turned.jpg": lambda: words("TIGER", size=(560, 400), face="sans", em=110, color="green"),
    "ocean_upside_down.jpg": lambda: words("OCEAN", face="serif", em=100, color="purple"),
    "sliced_text_and_shape.png": lambda: both(shape("circle", "red", size=WIDE, radius=130, at=(450, 210)), "HELLO", (448, 520)),
    "sliced_word.png": lambda: words("BRIDGE", size=WIDE, face="serif", em=150),
    "sliced_shapes.png": lambda: pair(),
    "sliced_number.png": lambda: both(shape("star", "blue", size=WIDE, radius=120, at=(640, 480)), "2047", (330, 180), "black", 170, "mono"),
}  # fmt: skip
# How the camera was held (the EXIF orientation), and the turn that stores the picture so.
TURNED = {"tiger_turned.jpg": (6, Image.Transpose.ROTATE_90), "ocean_upside_down.jpg": (3, Image.Transpose.ROTATE_180)}


def pair() -> Image.Image:
    picture = shape("square", "green", size=WIDE, ground=(255, 255, 255), radius=130, at=(220, 330))
    picture.paste(shape("triangle", "purple", size=(400, 672), ground=(255, 255, 255), radius=140, at=(200, 340)), (496, 0))
    return picture


def draw() -> None:
    for name, make in DRAWN.items():
        picture = make()
        if name in TURNED:
            orientation, turn = TURNED[name]
            exif = Image.Exif()
            exif[0x0112] = orientation
            picture.transpose(turn).save(FOLDER / name, quality=85, exif=exif)
        else:
            picture.quantize(64).save(FOLDER / name, optimize=True)


def turn(images, question: str, expected: str) -> dict:
    return {"images": [images] if isinstance(images, str) else images, "question": question, "expected": expected}


def cases() -> list[dict]:
    found = []

    def case(item: str, *turns: tuple) -> None:
        found.append({"item": item, "turns": [turn(*t) for t in turns]})

    for question, answer in {
        "What is the capital of France?": "Paris", "What is 7 + 8?": "15", "Who are you?": "I am a tiny vision model.",
        "Hello": "Hello! How can I help you?",
    }.items():  # fmt: skip
        case("1 plain text", ([], question, answer))
    what, shape_, color = "What is in the image?", "What shape is in the image?", "What color is the shape?"
    case("2 colour and shape", ("red_circle.png", what, "a red circle"))
    case("2 colour and shape", ("blue_star.png", what, "a blue star"))
    case("2 colour and shape", ("green_square.png", color, "green"))
    case("2 colour and shape", ("orange_cross.png", shape_, "cross"))
    case("2 colour and shape", ("yellow_triangle.png", "Describe the image.", "a yellow triangle"))
    say = "What does the text say?"
    for name, answer in {
        "hello_sans.png": "HELLO", "river_serif.png": "RIVER", "magic_mono.png": "MAGIC", "4096_serif.png": "4096", "715_mono.png": "715",
        "tiger_turned.jpg": "TIGER", "ocean_upside_down.jpg": "OCEAN",
    }.items():  # fmt: skip
        case("3 text in a picture", (name, say, answer))
    each = "Describe each image."
    case("4 two pictures", (["red_circle.png", "blue_star.png"], each, "Image 1: a red circle. Image 2: a blue star."))
    case("4 two pictures", (["hello_sans.png", "orange_cross.png"], each, "Image 1: the text HELLO. Image 2: an orange cross."))
    case("4 two pictures", (["green_square.png", "tiger_turned.jpg"], "What is in the second image?", "the text TIGER"))
    case("5 slices", ("sliced_text_and_shape.png", what, "a red circle and the text HELLO"))
    case("5 slices", ("sliced_word.png", say, "BRIDGE"))
    case("5 slices", ("sliced_shapes.png", what, "a green square and a purple triangle"))
    case("5 slices", ("sliced_number.png", say, "2047"))
    case("6 follow-up", ("purple_diamond.png", what, "a purple diamond"), ([], color, "purple"))
    case("6 follow-up", ("yellow_triangle.png", shape_, "triangle"), ([], "What is 3 + 4?", "7"), ([], color, "yellow"))
    case("6 follow-up", ("river_serif.png", what, "the text RIVER"), ([], say, "RIVER"))
    case("7 text after a picture", ("blue_star.png", shape_, "star"), ([], "What is the capital of Japan?", "Tokyo"))
    case("7 text after a picture", ("4096_serif.png", say, "4096"), ([], "What is 9 - 5?", "4"))
    case("7 text after a picture", ("sliced_word.png", say, "BRIDGE"), ([], "How many days are in a week?", "7"))
    case("8 Spanish", ([], "¿Cuál es la capital de España?", "Madrid"))
    case("8 Spanish", ([], "¿Cuánto es 3 + 4?", "7"))
    case("8 Spanish", ("red_circle.png", "¿Qué hay en la imagen?", "un círculo rojo"))
    case("8 Spanish", ("hello_sans.png", "¿Qué dice el texto?", "HELLO"))
    case("8 Spanish", ("green_square.png", "¿De qué color es la figura?", "verde"))
    return found


class Reference:
    def __init__(self, folder: Path):
        self.processor = AutoProcessor.from_pretrained(folder)
        self.processor.image_processor = MiniCPMV4_6ImageProcessorPil.from_pretrained(folder)
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()

    def prompt(self, messages: list[dict]) -> dict:
        how = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, "return_tensors": "pt"}
        return self.processor.apply_chat_template(messages, **how)

    @torch.no_grad()
    def answer(self, messages: list[dict]) -> tuple[dict, str, list[int]]:
        """Tokens and margins, the text, and the prompt's ids."""
        inputs = self.prompt(messages)
        out = self.model.generate(**inputs, max_new_tokens=STEPS, do_sample=False, output_logits=True, return_dict_in_generate=True)
        ids = inputs["input_ids"][0].tolist()
        tokens = out.sequences[0, len(ids) :].tolist()
        top = [torch.topk(step[0].float(), 2).values for step in out.logits]
        golden = {"tokens": tokens, "margins": [float(f"{float(a - b):.3g}") for a, b in top]}
        return golden, self.processor.tokenizer.decode(tokens, skip_special_tokens=True), ids


def battery(reference: Reference) -> list[dict]:
    found = cases()
    for case in found:
        messages = []
        for t in case["turns"]:
            # As the library's loading of files does: a picture is turned the way its camera was held.
            upright = [ImageOps.exif_transpose(Image.open(FOLDER / name)) for name in t["images"]]
            pictures = [{"type": "image", "image": picture} for picture in upright]
            content = [*pictures, {"type": "text", "text": t["question"]}] if pictures else t["question"]
            messages.append({"role": "user", "content": content})
            golden, text, _ = reference.answer(messages)
            note = "" if text == t["expected"] else f"   NOT {t['expected']!r}"
            print(f"{case['item']:24} {t['question']:32} {text!r}{note}", flush=True)
            t.update(golden)
            messages.append({"role": "assistant", "content": text})
    return found


def document(sentences: int, code: str) -> list[dict]:
    parts = [FILLER[i % len(FILLER)] for i in range(sentences)]
    parts.insert(round(sentences * DEPTH), f"The secret code is {code}.")
    return [{"role": "user", "content": " ".join(parts) + "\n" + QUESTION}]


def needles(reference: Reference) -> list[dict]:
    found = []
    for tokens, code in TIERS.items():
        sentences = tokens // 20
        while reference.prompt(document(sentences + 32, code))["input_ids"].shape[1] <= tokens:
            sentences += 32
        while reference.prompt(document(sentences + 1, code))["input_ids"].shape[1] <= tokens:
            sentences += 1
        golden, text, ids = reference.answer(document(sentences, code))
        print(f"needle {tokens}: {len(ids)} tokens, {sentences} sentences, {text!r}", flush=True)
        facts = {"tokens": tokens, "code": code, "sentences": sentences, "prompt_tokens": len(ids), "prompt_hash": fnv(ids)}
        found.append(facts | {"answer": golden})
    return found


def lines(records: list[dict]) -> str:
    return "[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records) + "\n]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "examples" / "assets" / "tiny")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw()
    reference = Reference(arguments.model)
    found = battery(reference)
    (FOLDER / "battery.json").write_text(lines(found) + "\n")
    tiers = needles(reference)
    filler = json.dumps(FILLER, ensure_ascii=False)
    (FOLDER / "needle.json").write_text(f'{{"filler":{filler},\n"question":"{QUESTION}","depth":{DEPTH},\n"tiers":{lines(tiers)}}}\n')
    margins = [m for case in found for t in case["turns"] for m in t["margins"]] + [m for t in tiers for m in t["answer"]["margins"]]
    print(f"{len(found)} cases, least margin {min(margins)}")


if __name__ == "__main__":
    main()

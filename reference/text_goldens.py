"""Golden texts and token ids of prompts, from transformers.

Writes into vlm-pipeline/tests/data:
* chat_template.json: conversations, and what two chat templates make of them;
* jinja.json: small templates, each for one thing that Jinja2 and Python do in their own way;
* prompt_ids.json: ids of the processor (with the PIL image processor) for conversations with pictures, run-length coded;
* control_tokens.json: ids where users typed control tokens, from transformers' `sanitize_control_tokens`;
* texts.json: ids of plain texts.

The checkpoint is examples/assets/tiny, the second template is the public one of Qwen3.5.
"""

import json
from itertools import groupby
from pathlib import Path

from PIL import Image
from transformers import AutoProcessor, AutoTokenizer
from transformers.models.minicpmv4_6.image_processing_pil_minicpmv4_6 import MiniCPMV4_6ImageProcessorPil
from transformers.utils.chat_template_utils import render_jinja_template

from conversations import CONTROL, CONVERSATIONS, JINJA, PICTURED, TEXTS

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "examples" / "assets" / "tiny"
DATA = ROOT / "vlm-pipeline" / "tests" / "data"

TOKENIZER = AutoTokenizer.from_pretrained(TINY)
PROCESSOR = AutoProcessor.from_pretrained(TINY)
PROCESSOR.image_processor = MiniCPMV4_6ImageProcessorPil.from_pretrained(TINY)
TEMPLATES = {
    "qwen": (DATA / "qwen3.5-chat-template.jinja").read_text(),
    "tiny": (TINY / "chat_template.jinja").read_text(),
}


def write(name: str, records: list[dict]) -> None:
    """One record a line."""
    lines = ",\n".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in records)
    path = DATA / name
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{name}: {len(records)} records, {path.stat().st_size} bytes")


def runs(ids: list[int]) -> list[list[int]]:
    """Run-length coded: [id, times]."""
    return [[value, len(list(group))] for value, group in groupby(ids)]


def flags(thinking) -> dict:
    return {} if thinking is None else {"enable_thinking": thinking}


def chat_template() -> None:
    records = []
    for name, request in CONVERSATIONS.items():
        for which, template in TEMPLATES.items():
            settings = [(True, None), (True, True), (True, False), (False, None)] if which == "qwen" else [(True, None), (False, None)]
            for prompt, thinking in settings:
                record = {"name": name, "template": which, "prompt": prompt, "thinking": thinking}
                try:
                    record["text"] = TOKENIZER.apply_chat_template(
                        request["messages"],
                        tools=request.get("tools"),
                        chat_template=template,
                        tokenize=False,
                        add_generation_prompt=prompt,
                        **flags(thinking),
                    )
                except Exception as error:  # what the template raises is the golden outcome
                    record["error"] = str(error) if type(error).__name__ == "TemplateError" else None
                records.append(record)
    # The four settings of one conversation share nearly all of their text: only what follows the shortest is kept.
    compact = []
    for (name, which), group in groupby(records, key=lambda r: (r["name"], r["template"])):
        group = list(group)
        base = {"name": name, "template": which, **CONVERSATIONS[name]}
        texts = [record.get("text") for record in group]
        if None in texts:
            assert all(text is None for text in texts), name
            compact.append({**base, "error": group[0]["error"]})
            continue
        shortest = min(texts, key=len)
        assert all(text.startswith(shortest) for text in texts), name
        variants = [[r["prompt"], r["thinking"], r["text"][len(shortest) :]] for r in group]
        compact.append({**base, "text": shortest, "variants": variants})
    write("chat_template.json", compact)


def jinja() -> None:
    records = []
    for source, variables in JINJA:
        record = {"template": source, "variables": variables}
        try:
            rendered, _ = render_jinja_template([[]], chat_template=source, **variables)
            record["text"] = rendered[0]
        except Exception as error:  # what the template raises is the golden outcome
            record["error"] = str(error) if type(error).__name__ == "TemplateError" else None
        records.append(record)
    write("jinja.json", records)


def image(size: list[int]) -> Image.Image:
    return Image.new("RGB", tuple(size), (128, 128, 128))


def prompt_ids() -> None:
    records = []
    for case in PICTURED:
        pictures = iter(case["sizes"])
        messages = json.loads(json.dumps(case["messages"]))
        for message in messages:
            if isinstance(message["content"], list):
                for part in message["content"]:
                    if part["type"] == "image":
                        part["image"] = image(next(pictures))
        mode = case.get("downsample_mode", "16x")
        out = PROCESSOR.apply_chat_template(
            messages,
            chat_template=TEMPLATES[case.get("template", "tiny")],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            processor_kwargs={
                "images_kwargs": {
                    "downsample_mode": mode,
                    "max_slice_nums": case.get("max_slice_nums", 9),
                    "slice_mode": case.get("slice_mode", True),
                },
                "use_image_id": case.get("use_image_id", True),
            },
        )
        ids = out["input_ids"]
        ids = ids[0] if isinstance(ids[0], list) else ids
        ids = ids.tolist() if hasattr(ids, "tolist") else ids
        ids = ids[0] if isinstance(ids[0], list) else ids
        records.append({**case, "ids": runs(ids)})
    write("prompt_ids.json", records)


def control_tokens() -> None:
    records = []
    for request in CONTROL:
        for which, template in TEMPLATES.items():
            ids = TOKENIZER.apply_chat_template(
                request["messages"],
                tools=request.get("tools"),
                chat_template=template,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
                sanitize_control_tokens=True,
            )
            records.append({**request, "template": which, "ids": ids})
    write("control_tokens.json", records)


def texts() -> None:
    records = []
    for text in TEXTS:
        ids = TOKENIZER.encode(text, add_special_tokens=False)
        records.append({"text": text, "ids": ids, "decoded": TOKENIZER.decode(ids, skip_special_tokens=True)})
    write("texts.json", records)


if __name__ == "__main__":
    chat_template()
    jinja()
    prompt_ids()
    control_tokens()
    texts()

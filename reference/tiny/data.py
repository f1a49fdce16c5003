"""Text side of the training data: tokenizer, chat layout, text questions and needle documents.

Everything is drawn from a `random.Random`, so that a seed and a step number fix a batch.
"""

import functools
import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
VOCAB = 768
SPECIALS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>", "<image>", "</image>",
    "<slice>", "</slice>", "<image_id>", "</image_id>", "<think>", "</think>",
]  # fmt: skip
FIRST = VOCAB - len(SPECIALS)
ID = {s: FIRST + i for i, s in enumerate(SPECIALS)}
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = (HERE / "words.txt").read_text().split()

CAPITALS = {
    "France": ("Paris", "Francia", "París"), "Italy": ("Rome", "Italia", "Roma"), "Spain": ("Madrid", "España", "Madrid"),
    "Germany": ("Berlin", "Alemania", "Berlín"), "Japan": ("Tokyo", "Japón", "Tokio"), "China": ("Beijing", "China", "Pekín"),
    "Russia": ("Moscow", "Rusia", "Moscú"), "Egypt": ("Cairo", "Egipto", "El Cairo"), "Peru": ("Lima", "Perú", "Lima"),
    "Canada": ("Ottawa", "Canadá", "Ottawa"), "Norway": ("Oslo", "Noruega", "Oslo"), "Greece": ("Athens", "Grecia", "Atenas"),
    "Portugal": ("Lisbon", "Portugal", "Lisboa"), "Austria": ("Vienna", "Austria", "Viena"), "Cuba": ("Havana", "Cuba", "La Habana"),
    "England": ("London", "Inglaterra", "Londres"),
}  # fmt: skip
STORY = (
    "Once upon a time a small robot lived near the river. Every morning it counted the birds on the old bridge. "
    "One day a red bird asked for help. The robot built a warm nest from leaves and string. "
    "The bird was happy, and the two were friends for many years."
)
HELP, AYUDA = "Hello! How can I help you?", "¡Hola! ¿En qué puedo ayudarte?"
MODEL, MODELO = "I am a tiny vision model.", "Soy un modelo de visión muy pequeño."
CHAT = [  # questions, answer
    (["Hello", "Hello!", "Hi", "Hi!", "Hello there!"], HELP),
    (["Who are you?", "What are you?", "What is your name?"], MODEL),
    (["How are you?", "Hello, how are you?"], "I am fine, thank you."),
    (["Thank you.", "Thank you!", "Thanks!"], "You are welcome!"),
    (["Good morning.", "Good morning!"], "Good morning!"),
    (["Goodbye.", "Goodbye!", "Bye!"], "Goodbye!"),
    (["Tell me a story.", "Tell me a short story."], STORY),
    (["What color is the sky?"], "blue"), (["What color is grass?"], "green"), (["What color is snow?"], "white"),
    (["How many days are in a week?"], "7"), (["How many legs does a spider have?"], "8"),
    (["Count to five.", "Count from one to five."], "1, 2, 3, 4, 5"),
]  # fmt: skip
CHAT_ES = [
    (["Hola", "¡Hola!", "Hola."], AYUDA), (["¿Quién eres?", "¿Qué eres?"], MODELO), (["¿Cómo estás?"], "Estoy bien, gracias."),
    (["Gracias.", "¡Gracias!"], "¡De nada!"), (["Buenos días.", "¡Buenos días!"], "¡Buenos días!"), (["Adiós.", "¡Adiós!"], "¡Adiós!"),
    (["¿De qué color es el cielo?"], "azul"), (["¿De qué color es la nieve?"], "blanco"),
    (["¿Cuántos días tiene una semana?"], "7"),
]  # fmt: skip

ADJ = "old small quiet warm long green tall young empty bright narrow busy wooden gentle early distant grey simple".split()
NOUN = (
    "river bridge garden robot bird town market window road tree boat house letter clock lamp story field teacher "
    "friend harbor kitchen mountain station library baker forest"
).split()
VERB = "watches crosses follows remembers paints visits leaves repairs passes finds counts carries".split()
TAIL = (
    "in the morning|every day|after the rain|near the water|without a sound|at noon|for many years|in the winter|"
    "before sunrise|with a smile|on the way home|under the stars"
).split("|")
STOCK = (
    "The wind was warm and the day was long.|Nobody was in a hurry.|It was a quiet day.|The water ran under the bridge.|"
    "Some leaves fell from the tree.|Then the rain came and went.|The market opens at noon.|A small boat waits in the harbor."
).split("|")
CODE = (
    "falcon tiger lemon pepper marble copper silver violet maple ocean comet rocket anchor island velvet "
    "winter summer planet castle cactus walnut ginger saffron thunder"
).split()
NEEDLE = ["The secret code is {}.", "The secret code is {}.", "Remember this: the secret code is {}.", "The code is {}."]
ASK = ["What is the secret code?", "What is the secret code?", "What is the code?", "Tell me the secret code."]
ASK_ES = "¿Cuál es el código secreto?"
SYSTEM = "You are a helpful assistant."


def sentence(rng):
    """One filler sentence; numbers and hyphens occur, so that the code cannot be told by its form alone."""
    k = rng.random()
    noun, other = rng.choice(NOUN), rng.choice(NOUN)
    if k < 0.15:
        return rng.choice(STOCK)
    if k < 0.22:
        return f"The {noun} has the number {rng.randint(0, 9999)}."
    if k < 0.26:
        return f"The {rng.choice(CODE)} is near the {other}."
    if k < 0.34:  # words that no template has, so that any document can be filler
        word = "".join(rng.choice("bcdfghlmnprstv") + rng.choice("aeiou") for _ in range(rng.randint(1, 4)))
        return f"The {word} {rng.choice(VERB)} the {rng.choice(ADJ)} {noun}."
    if k < 0.38:
        return f"The {noun} at gate {rng.choice(ADJ)}-{rng.randint(0, 99)} is {rng.choice(ADJ)}."
    end = " " + rng.choice(TAIL) if rng.random() < 0.6 else ""
    return f"The {rng.choice(ADJ)} {noun} {rng.choice(VERB)} the {rng.choice(ADJ)} {other}{end}."


def code(rng):
    """A fabricated code phrase such as `falcon-4821`."""
    if rng.random() < 0.2:
        return f"{rng.choice(CODE)}-{rng.choice(CODE)}-{rng.randint(10, 99)}"
    return f"{rng.choice(CODE)}-{rng.randint(10, 9999)}"


def sum_question(rng, spanish=False):
    """A sum or difference of small numbers."""
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    if rng.random() < 0.35:
        a, b = max(a, b), min(a, b)
        sign, word, result = "-", ("menos" if spanish else "minus"), a - b
    else:
        sign, word, result = "+", ("más" if spanish else "plus"), a + b
    form = f"{a} {rng.choice([sign, sign, word])} {b}"
    if spanish:
        return f"¿Cuánto es {form}?", str(result)
    return rng.choice([f"What is {form}?", f"What is {form}?", f"How much is {form}?"]), str(result)


def text_question(rng, spanish=None):
    """A question without a picture: (question, answer, kind)."""
    spanish = rng.random() < 0.35 if spanish is None else spanish
    k, kind = rng.random(), "spanish" if spanish else "text"
    if k < 0.4:
        return (*sum_question(rng, spanish), kind)
    if k < 0.75:
        country = rng.choice(list(CAPITALS))
        city, pais, ciudad = CAPITALS[country]
        if spanish:
            return f"¿Cuál es la capital de {pais}?", ciudad, kind
        forms = ["What is the capital of {}?", "What is the capital of {}?", "Name the capital of {}.",
                 "Which city is the capital of {}?"]  # fmt: skip
        return rng.choice(forms).format(country), city, kind
    questions, answer = rng.choice(CHAT_ES if spanish else CHAT)
    return rng.choice(questions), answer, kind


def corpus():
    """Text that the byte-pair merges are learned from; pictures' words are left out, so that they stay letters."""
    import random

    from scenes import corpus_lines

    rng, lines = random.Random(7), []
    lines += ["user\n", "assistant\n", "\n\n", "system\n" + SYSTEM] * 200
    lines += corpus_lines(rng) + [q + "\n" + a for q, a, _ in (text_question(rng) for _ in range(3000))]
    lines += [" " + sentence(rng) for _ in range(1500)] + [f.format(code(rng)) for f in NEEDLE * 60] + ASK * 60
    lines += [ASK_ES] * 40 + [f"{c}-" for c in CODE] * 8 + [STORY] * 20
    return lines


def build_tokenizer():
    """Byte-level BPE of 755 entries and 13 special tokens; the same merges on every run."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=FIRST, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())
    )
    tok.train_from_iterator(corpus(), trainer)
    if tok.get_vocab_size() != FIRST:
        raise ValueError(f"the merges gave {tok.get_vocab_size()} entries, not {FIRST}")
    from tokenizers import AddedToken

    for s in SPECIALS:
        think = s in ("<think>", "</think>")
        added = AddedToken(s, special=not think, normalized=False)
        (tok.add_tokens if think else tok.add_special_tokens)([added])
    if any(tok.token_to_id(s) != i for s, i in ID.items()):
        raise ValueError("special tokens are out of place")
    return tok


class Chat:
    """Builds token ids and labels of conversations, exactly as the chat template and processor would."""

    def __init__(self, tokenizer):
        self.encode = functools.lru_cache(maxsize=200_000)(lambda s: tuple(tokenizer.encode(s, add_special_tokens=False).ids))

    def image_block(self, index, counts, grid):
        """Ids of one image: counts[0] pads for the overview, then one count per slice of the grid (rows, cols)."""
        pad, e = ID["<|image_pad|>"], self.encode
        out = [ID["<image_id>"], *e(str(index)), ID["</image_id>"], ID["<image>"], *[pad] * counts[0], ID["</image>"]]
        for i, n in enumerate(counts[1:]):
            if i and i % grid[1] == 0:
                out += e("\n")
            out += [ID["<slice>"], *[pad] * n, ID["</slice>"]]
        return out

    def build(self, turns, rng, system=None, think_history=None):
        """Turns are (question, answer, kind, image blocks); returns ids, labels (-100 off) and kinds."""
        e, ids, labels, kinds = self.encode, [], [], []

        def put(new, kind=None):
            ids.extend(new)
            labels.extend(new if kind is not None else [-100] * len(new))
            kinds.extend([kind or 0] * len(new))

        if system:
            put([ID["<|im_start|>"], *e("system\n" + system), ID["<|im_end|>"], *e("\n")])
        history = rng.random() < 0.5 if think_history is None else think_history
        for i, (question, answer, kind, blocks) in enumerate(turns):
            put([ID["<|im_start|>"], *e("user\n" if blocks else "user\n" + question)])
            for j, block in enumerate(blocks):
                put(block)
                put(e("\n" + question) if j + 1 == len(blocks) else e("\n"))
            put([ID["<|im_end|>"], *e("\n"), ID["<|im_start|>"]])
            if i + 1 == len(turns) or history:
                put([*e("assistant\n"), ID["<think>"], *e("\n\n"), ID["</think>"], *e("\n\n")])
            else:
                put(e("assistant\n"))
            put(e(answer), kind)
            put([ID["<|im_end|>"]], kind)
            if i + 1 < len(turns):
                put(e("\n"))
        return ids, labels, kinds


class Needles:
    """Documents of an exact length with one code phrase in them and the question after them."""

    def __init__(self, chat, rng, pool=4000):
        self.chat = chat
        lines = [sentence(rng) for _ in range(pool)]
        self.pool = [(chat.encode(" " + s), chat.encode(s + "\n"), chat.encode(" " + s + "\n"), chat.encode(s)) for s in lines]

    def make(self, length, rng, depth=None):
        """Ids of `length` tokens and the index of the first answer token."""
        e, answer = self.chat.encode, code(rng)
        spanish = rng.random() < 0.1
        ask = ASK_ES if spanish else rng.choice(ASK)
        joint = rng.choice(["\n\n", "\n", " "])
        needle = rng.choice(NEEDLE).format(answer)
        head = [ID["<|im_start|>"], *e("user\n")]
        if rng.random() < 0.1:
            head += e(ask + "\n")
        tail = [*e(joint + ask if joint == " " else ask), ID["<|im_end|>"], *e("\n"), ID["<|im_start|>"], *e("assistant\n")]
        tail += [ID["<think>"], *e("\n\n"), ID["</think>"], *e("\n\n")]
        final = [*e(answer), ID["<|im_end|>"]]
        # a full stop and the line breaks after it are one piece of the tokenizer's split
        closing = e(" " + rng.choice(STOCK)[:-1] + "." + ("" if joint == " " else joint))
        depth = (0.6 if rng.random() < 0.2 else rng.random()) if depth is None else depth
        repeat = [rng.randrange(len(self.pool)) for _ in range(rng.randint(3, 9))] if rng.random() < 0.15 else None
        fixed = len(head) + len(closing) + len(tail) + len(final)
        room = length - fixed - len(e(" " + needle))
        before = self.filler(round(depth * room), rng, repeat, fresh=True)
        planted = e(" " + needle if before else needle)
        after = self.filler(length - fixed - len(before) - len(planted), rng, repeat)
        ids = [*head, *before, *planted, *after, *closing, *tail, *final]
        return ids, len(ids) - len(final)

    def filler(self, n, rng, repeat, fresh=False):
        """Exactly n tokens of sentences, the last one cut off where it must be."""
        out, i, breaks = [], 0, fresh
        while len(out) < n:
            pick = self.pool[repeat[i % len(repeat)] if repeat else rng.randrange(len(self.pool))]
            fresh, breaks, i = breaks, rng.random() < 0.1, i + 1
            out += pick[(1 if breaks else 3) if fresh else (2 if breaks else 0)]
        return out[:n]


def config(layers=8):
    """The model's configuration, in the form of the public checkpoint's."""
    kinds = (["linear_attention"] * 3 + ["full_attention"]) * 2
    text = dict(
        attention_bias=False, attention_dropout=0.0, bos_token_id=None, eos_token_id=ID["<|im_end|>"], head_dim=64,
        hidden_act="silu", hidden_size=128, initializer_range=0.02, intermediate_size=256, layer_types=kinds,
        linear_conv_kernel_dim=4, linear_key_head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
        linear_value_head_dim=32, max_position_embeddings=32768, model_type="qwen3_5_text", num_attention_heads=2,
        num_hidden_layers=8, num_key_value_heads=1, pad_token_id=None, rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters=dict(mrope_interleaved=True, mrope_section=[3, 3, 2], partial_rotary_factor=0.25,
                             rope_theta=10000000.0, rope_type="default"), use_cache=True, vocab_size=VOCAB,
    )  # fmt: skip
    vision = dict(
        attention_dropout=0.0, hidden_act="gelu_pytorch_tanh", hidden_size=144, image_size=980, insert_layer_id=2,
        intermediate_size=288, layer_norm_eps=1e-6, model_type="minicpmv4_6_vision", num_attention_heads=2, num_channels=3,
        num_hidden_layers=layers, patch_size=14, window_kernel_size=[2, 2],
    )  # fmt: skip
    return dict(
        architectures=["MiniCPMV4_6ForConditionalGeneration"], downsample_mode="16x", drop_vision_last_layer=False,
        dtype="bfloat16", image_size=448, image_token_id=ID["<|image_pad|>"], insert_layer_id=2, merge_kernel_size=[2, 2],
        merger_times=1, model_type="minicpmv4_6", patch_size=14, text_config=text, tie_word_embeddings=True,
        video_token_id=ID["<|video_pad|>"], vision_config=vision,
    )  # fmt: skip


if __name__ == "__main__":
    import sys

    Path(sys.argv[1]).write_text(json.dumps(json.loads(build_tokenizer().to_str()), ensure_ascii=False, indent=1))

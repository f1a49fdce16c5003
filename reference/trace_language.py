"""Golden files of the backbone: every layer, logits and greedy tokens of each case, in float32 on the CPU."""

import math
import shutil

import torch

import cases
import float64
import synthetic
from golden import Golden, load_case, spread

DATA = cases.ROOT / "qwen3-hybrid/tests/data"
# Half of what the layers are held to, so that another order of summation has room.
NOISE_LIMIT = 8e-6
LENGTHS = [1, 5, 70, 150]
STEPS = 64
# Positions of the 70-token prompt whose embeddings are replaced in the mixed run: a block, a single one and the last but one.
REPLACED = [*range(3, 21), 40, 68]


def backbone(model):
    return model.model.language_model if hasattr(model.model, "language_model") else model.model


def trace(model, embeds) -> dict[str, torch.Tensor]:
    """Every stage of one pass without a cache, [tokens, width]; `logits` for every position."""
    text = backbone(model)
    stages, hooks = {}, []

    def record(name):
        def hook(_module, _args, output):
            tensor = output[0] if isinstance(output, tuple) else output
            stages[name] = tensor.detach().reshape(-1, tensor.shape[-1])

        return hook

    for index, layer in enumerate(text.layers):
        hooks.append(layer.register_forward_hook(record(f"layers.{index}")))
    hooks.append(text.norm.register_forward_hook(record("norm")))
    with torch.no_grad():
        output = model(inputs_embeds=embeds[None], use_cache=False)
    for hook in hooks:
        hook.remove()
    return {"embeddings": embeds.detach(), **stages, "logits": output.logits[0]}


def greedy(model, steps: int, embeds):
    """Greedy ids of `steps` steps with a cache, and the logits [steps, vocab] that each was chosen from."""
    inputs = {"inputs_embeds": embeds[None]}
    chosen, logits, cache = [], [], None
    for _ in range(steps):
        with torch.no_grad():
            output = model(**inputs, cache=cache, use_cache=True)
        cache = output.cache
        logits.append(output.logits[0, -1])
        chosen.append(int(logits[-1].argmax()))
        inputs = {"input_ids": torch.tensor([[chosen[-1]]])}
    return torch.tensor(chosen), torch.stack(logits)


def margins(logits: torch.Tensor) -> torch.Tensor:
    """Distance from the largest logit to the second, relative to the largest magnitude of the step's logits."""
    top = logits.topk(2, dim=-1).values
    return (top[:, 0] - top[:, 1]) / logits.abs().amax(dim=-1)


def check_cache(model, embeds, chosen, logits) -> float:
    """The cached steps against one pass over everything: the reference must agree with itself."""
    table = model.get_input_embeddings()
    whole = trace(model, torch.cat([embeds, table(chosen[:-1])]))["logits"][-len(chosen) :]
    error = float((whole - logits).abs().max() / logits.abs().max())
    if error > 5e-5 or not torch.equal(whole.argmax(-1), chosen):
        raise RuntimeError(f"cache and no cache differ by {error:.1e}")
    return error


def add_run(golden, model, twin, name, keep, ids, embeds=None):
    table = model.get_input_embeddings()
    if embeds is None:
        embeds = table(ids).detach()
    stages = trace(model, embeds)
    chosen, logits = greedy(model, STEPS, embeds)
    exact = trace(twin, torch.cat([embeds, table(chosen[:-1])]).double())
    exact_logits = exact["logits"][-STEPS:]
    apart = margins(logits)
    if apart.min() < 1e-4:
        raise RuntimeError(f"{name}: a margin of {apart.min():.1e} decides nothing")
    error = check_cache(model, embeds, chosen, logits)
    print(f"  {name}: cache error {error:.1e}, least margin {apart.min():.1e}, {len(set(chosen.tolist()))} different tokens")
    golden.whole(f"{name}.ids", ids.to(torch.int32))
    golden.whole(f"{name}.greedy", chosen.to(torch.int32))
    golden.whole(f"{name}.margins", apart)
    golden.sample(f"{name}.step_logits", logits, exact_logits, keep * 2)
    for stage, tensor in stages.items():
        golden.sample(f"{name}.{stage}", tensor, exact[stage][: len(ids)], keep)
    golden.sample(f"{name}.last_logits", stages["logits"][-1:], exact_logits[:1], 10_000)
    if name == "prompt.150":
        for stage, tensor in stages.items():
            print(f"    {stage:12} {list(tensor.shape)} {spread(tensor)}")
    return list(stages)


def main():
    for case in cases.CASES:
        if not case.language:
            continue
        print(case.name)
        model = load_case(case)
        text = case.config.get("text_config", case.config)
        hidden, vocab = text["hidden_size"], text["vocab_size"]
        twin = float64.twin(model)
        golden = Golden(NOISE_LIMIT, seed=case.seed, dtype=case.dtype, shards=case.shards, mtp=case.mtp, replaced=REPLACED, lengths=LENGTHS)
        # Five runs of every layer, the norm, the embeddings, two kinds of logits and the steps in 80 kB.
        keep = 15_000 // (5 * (text["num_hidden_layers"] + 5))
        for length in LENGTHS:
            ids = synthetic.token_ids(f"prompt.{length}", length, case.seed, vocab - 8)
            stages = add_run(golden, model, twin, f"prompt.{length}", keep, ids)
        ids = synthetic.token_ids("prompt.70", 70, case.seed, vocab - 8)
        embeds = model.get_input_embeddings()(ids).detach().clone()
        scale = 2.0 * math.sqrt(3.0 / hidden)
        embeds[REPLACED] = synthetic.values("inputs_embeds", (len(REPLACED), hidden), case.seed, 0.0, scale)
        add_run(golden, model, twin, "mixed", keep, ids, embeds)
        golden.fact("stages", stages)
        golden.save(DATA / f"{case.name}.safetensors")
        shutil.copy(cases.HERE / f"configs/{case.name}.json", DATA / f"{case.name}.json")


if __name__ == "__main__":
    main()

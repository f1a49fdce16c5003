"""The same reference in float64, to tell how much of a difference is float32's own rounding.

Transformers casts to float32 inside its norms, its softmax and its delta rule, so that a model moved to float64 would still round
there. Here the modelling modules are loaded a second time with those casts widened.
"""

import importlib.util
import sys

import torch

MODULES = ["transformers.models.qwen3_5.modeling_qwen3_5", "transformers.models.minicpmv4_6.modeling_minicpmv4_6"]
WIDENED = [("torch.float32", "torch.float64"), (".float()", ".double()"), ("dtype=torch.float)", "dtype=torch.double)")]


def widened(name: str):
    """The module `name`, loaded under another name with every cast to float32 made a cast to float64."""
    alias = f"{name}_float64"
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.find_spec(name)
    source = open(spec.origin).read()
    for old, new in WIDENED:
        source = source.replace(old, new)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(alias, loader=None, origin=spec.origin))
    module.__package__ = name.rpartition(".")[0]
    module.__file__ = spec.origin
    sys.modules[alias] = module
    exec(compile(source, spec.origin, "exec"), module.__dict__)
    return module


def twin(model):
    """A float64 copy of a float32 model: the same weights in the widened classes."""
    qwen, minicpm = (widened(name) for name in MODULES)
    saved = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        if type(model).__name__ == "Qwen3_5ForCausalLM":
            copy = qwen.Qwen3_5ForCausalLM(model.config)
        else:
            copy = minicpm.MiniCPMV4_6ForConditionalGeneration(model.config)
            copy.model.language_model = qwen.Qwen3_5TextModel(model.config.text_config)
        copy = copy.to(torch.float64)
        copy.load_state_dict(model.state_dict())
        copy.tie_weights()
    finally:
        torch.set_default_dtype(saved)
    return copy.eval()

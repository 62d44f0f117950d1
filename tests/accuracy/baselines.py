"""What users have today: rules of thumb and public estimators, restated, in GiB of one GPU.

They answer other questions than Sagefit does; beside it they show what a number without activations, or without the
software stack, is worth for choosing an instance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from sagefit.memory import GIB, Placement, Transformer, Workload
from sagefit.memory.stacks import PROFILES
from sagefit.memory.transformer import Sizes, sizes

Rule = Callable[[Workload, Placement], float]
GB = 1e9


def _model(workload: Workload) -> Transformer:
    if not isinstance(workload.model, Transformer):
        raise TypeError("the rules are for transformers")
    return workload.model


def _sizes(workload: Workload) -> Sizes:
    return sizes(_model(workload), workload, PROFILES[workload.stack])


def _trained(workload: Workload) -> float:
    model = _model(workload)
    return model.params if workload.method == "full" else _sizes(workload).adapters


def _frozen(workload: Workload) -> float:
    """Bytes of what is not trained: 2 for each parameter, half a byte when quantized to 4 bits."""
    return {"full": 0.0, "lora": 2.0, "qlora": 0.5}[workload.method] * _model(workload).params


def sixteen_bytes(workload: Workload, placement: Placement) -> float:
    """16 bytes for each trained parameter, shared by all GPUs when anything is sharded."""
    ranks = placement.gpus if workload.sharding != "none" else 1
    return (_frozen(workload) + 16 * _trained(workload) / ranks) / GIB


def accelerate(workload: Workload, _placement: Placement) -> float:
    """``accelerate estimate-memory``: four times the model's size in its data type."""
    size = 4 if workload.precision == "fp32" else 2
    return 4 * size * _model(workload).params / GIB


def deepspeed(workload: Workload, placement: Placement) -> float:
    """DeepSpeed's ``estimate_zero2/3_model_states_mem_needs``, without offload."""
    params, ranks = _trained(workload), placement.gpus
    if workload.sharding == "zero3":
        layer = 4 * _sizes(workload).layer
        return (layer + (18 * params + _frozen(workload)) / ranks) / GIB
    if workload.sharding == "none":
        return (_frozen(workload) + 18 * params) / GIB
    return (_frozen(workload) + 2 * params + 16 * params / ranks) / GIB


def unsloth_style(workload: Workload, _placement: Placement) -> float:
    """The rule that Unsloth documents: weights, adapters, optimizer, one layer's activations times a factor, 1.4 GB."""
    model = _model(workload)
    trained = _trained(workload)
    sixteen_bit = 2.0 * model.params
    weights = sixteen_bit / 3.2 if workload.method == "qlora" else sixteen_bit
    states = {"adamw": 8, "adamw-8bit": 4, "paged-adamw-8bit": 4}.get(workload.optimizer, 6)
    tokens = workload.micro_batch * workload.sequence_length
    kv = model.kv_heads * model.head_dim
    layer = (tokens * (model.hidden + 2 * kv) + 2 * tokens + 2 * tokens * model.ffn) * 2 * 1.25
    factor = 1.5 if workload.gradient_checkpointing else 2.0
    if workload.attention == "eager":
        layer += 24.0 * workload.micro_batch * model.heads * workload.sequence_length**2
    return (weights + (2 + states) * trained + layer * factor + 1.4e9) / GIB


# GB for 7, 14, 30 and 70 billion parameters, and for each billion beyond.
_FACTORY = {
    "full mixed": ((120, 240, 600, 1200), 18.0),
    "full": ((60, 120, 300, 600), 8.0),
    "lora": ((16, 32, 64, 160), 2.0),
    "qlora": ((6, 12, 24, 48), 0.5),
}


def llama_factory(workload: Workload, _placement: Placement) -> float:
    """The table of hardware requirements in LLaMA-Factory's README, on lines between its columns.

    It does not say for how many GPUs; each is taken to need all of it.
    """
    mixed = workload.method == "full" and workload.precision.endswith("mixed")
    sizes, beyond = _FACTORY["full mixed" if mixed else workload.method]
    billions = _model(workload).params / 1e9
    known = list(zip((0, 7, 14, 30, 70), (0, *sizes), strict=True))
    for (low, less), (high, more) in itertools.pairwise(known):
        if billions <= high:
            return (less + (more - less) * (billions - low) / (high - low)) * GB / GIB
    return (sizes[-1] + beyond * (billions - 70)) * GB / GIB


RULES: dict[str, Rule] = {
    "16 bytes/parameter": sixteen_bytes,
    "accelerate estimate-memory": accelerate,
    "DeepSpeed ZeRO estimator": deepspeed,
    "Unsloth-style rule": unsloth_style,
    "LLaMA-Factory's table": llama_factory,
}

"""Calls the user's function so that its model and batch hold no values."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

from . import protocol


def task(function: Callable[..., Any], given: Mapping[str, Any], mode: FakeTensorMode) -> protocol.Task:
    """A batch of training on fake tensors.

    A model that cannot be built so (it looks at values, as in ``torch.linspace(...).tolist()``, or has lazy layers) is
    built for real, which without initialisers takes little memory, and then made fake.
    """
    arguments = protocol.arguments(function, given)
    try:
        with mode:
            built = _call(function, arguments, given["precision"])
    except MemoryError:
        raise
    except Exception:
        traceback.print_exc()
        built = _call(function, arguments, given["precision"])
    found = protocol.task(built)
    with mode:
        _make_fake(found.model, mode)
        batch = tree_map_only(torch.Tensor, lambda t: t if isinstance(t, FakeTensor) else mode.from_tensor(t), built[1])
    found = protocol.task((found.model, batch, *built[2:]))
    found.model.train()
    if given["gradient_checkpointing"] and "gradient_checkpointing" not in arguments:
        names = ("activation_checkpointing_enable", "gradient_checkpointing_enable")  # of transformers 6 and before
        enable = next((getattr(found.model, name) for name in names if hasattr(found.model, name)), None)
        if enable is None or not getattr(found.model, "supports_gradient_checkpointing", True):
            raise protocol.ProtocolError(
                "the job uses gradient checkpointing, and the model has no method for it: let the function take "
                "gradient_checkpointing and turn it on itself"
            )
        enable({"use_reentrant": False})
    return found


def family(batch: Any) -> str:
    """``vision`` when the batch holds images: real numbers in four dimensions."""
    tensors = [leaf for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor)]
    return "vision" if any(t.dim() == 4 and t.is_floating_point() for t in tensors) else "transformer"


def _call(function: Callable[..., Any], arguments: Mapping[str, Any], precision: str) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if precision == "bf16" else torch.float32)
    try:
        return function(**arguments)
    finally:
        torch.set_default_dtype(before)


def _make_fake(model: torch.nn.Module, mode: FakeTensorMode) -> None:
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, tensor in table.items():
                if tensor is not None and not isinstance(tensor, FakeTensor):
                    table[name] = mode.from_tensor(tensor)

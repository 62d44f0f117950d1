"""The user's side: a function that builds a model and one batch, and how to get a loss from them."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

KNOWN = (
    "batch_size",
    "sequence_length",
    "image_size",
    "precision",
    "gradient_checkpointing",
    "hyperparameters",
)


class ProtocolError(Exception):
    """The user's function is not as expected; the text says what is expected, and what to change."""


class Task(NamedTuple):
    """One batch of training: ``forward()`` returns the loss, and what a training loop holds besides until the end of
    backward: the model's output, which of a language model are the logits."""

    model: torch.nn.Module
    batch: Any
    forward: Callable[[], tuple[torch.Tensor, Any]]


def load(code: Path, function: str) -> Callable[..., Any]:
    """The function ``file.py:name`` of the folder ``code``, which becomes the first place to import from."""
    file, _, name = function.partition(":")
    sys.path.insert(0, str(code))
    spec = importlib.util.spec_from_file_location(Path(file).stem, code / file)
    if spec is None or spec.loader is None:
        raise ProtocolError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[Path(file).stem] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise ProtocolError(f"{file} defines no function {name!r}")
    return found  # type: ignore[no-any-return]


def arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the known arguments that the function declares."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return {name: given[name] for name in KNOWN if given.get(name) is not None}
    if "batch_size" not in {p.name for p in parameters}:
        raise ProtocolError("the function takes no batch_size: bytes for another batch would be unknown")
    wanted = {}
    for parameter in parameters:
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        if parameter.name in KNOWN and given.get(parameter.name) is not None:
            wanted[parameter.name] = given[parameter.name]
        elif needed and parameter.name in KNOWN:
            raise ProtocolError(f"the function wants {parameter.name}, which the job file does not give")
        elif needed:
            raise ProtocolError(f"the function wants {parameter.name!r}; it may ask for {', '.join(KNOWN)}")
    return wanted


def task(built: Any) -> Task:
    """What the function returned as a task. Raises ProtocolError when it is none."""
    if not isinstance(built, tuple) or len(built) not in (2, 3):
        raise ProtocolError("the function must return (model, batch) or (model, batch, loss)")
    model, batch, *rest = built
    if not isinstance(model, torch.nn.Module):
        raise ProtocolError(f"the first thing returned must be a torch.nn.Module, not {type(model).__name__}")
    if rest and not callable(rest[0]):
        raise ProtocolError("the third thing returned must be a function of (model, batch) that returns the loss")
    return Task(model, batch, lambda: _forward(model, batch, rest[0] if rest else None))


def _forward(model: torch.nn.Module, batch: Any, function: Callable[..., Any] | None) -> tuple[torch.Tensor, Any]:
    output = None
    if function is not None:
        loss = function(model, batch)
    else:
        if isinstance(batch, Mapping):
            output = model(**batch)
        else:
            output = model(*batch) if isinstance(batch, (tuple, list)) else model(batch)
        loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", output)
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
        where = "the loss function" if function else "the model"
        knob = "" if function else "; return a third value, a function of (model, batch) that returns the loss"
        raise ProtocolError(f"{where} gave no scalar tensor as loss{knob}")
    return loss, output

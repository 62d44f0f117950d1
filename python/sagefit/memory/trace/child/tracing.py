"""The traces of one request: each batch, without checkpointing and with it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import build, device, measure, protocol


def trace(request: Mapping[str, Any], progress: Callable[[str], object]) -> dict[str, Any]:
    """Bytes of the model at every point that ``request`` asks for, and what does not depend on the point.

    Raises ProtocolError for a function that is not what is expected; what a trace cannot follow raises as torch does.
    """
    device.as_on_gpu()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    function = protocol.load(Path(request["code"]), request["function"])
    points: list[dict[str, Any]] = []
    states: dict[str, Any] = {}
    for checkpointing in request["checkpointing"]:
        found: list[dict[str, Any]] = []
        try:
            for size in request["batches"]:
                progress(f"batch {size}{', checkpointing' if checkpointing else ''}")
                task = build.task(function, _given(request, size, checkpointing), mode)
                with mode:
                    peaks: dict[str, Any] = measure.training(task, request["precision"])
                    states = states or measure.states(task.model) | {"family": build.family(task.batch)}
                    peaks["evaluation"] = {"evaluation": measure.evaluation(task, request["precision"])}
                found.append({"batch": size, "checkpointing": checkpointing, "peaks": peaks})
        except Exception:
            if not points:
                raise
            traceback.print_exc()  # checkpointing was tried as a remedy only; this model goes without
            found = []
        points += found
    _check(states, points, request["method"])
    return {"torch": torch.__version__, "points": points, **states}


def _given(request: Mapping[str, Any], size: int, checkpointing: bool) -> dict[str, Any]:
    """Everything that the function may ask for. The hyperparameter of the batch size follows the traced batch."""
    given = {**request["arguments"], "batch_size": size, "gradient_checkpointing": checkpointing}
    knob = request["batch_hyperparameter"]
    if knob:
        given["hyperparameters"] = {**given["hyperparameters"], knob: size}
    return given


def _check(states: Mapping[str, Any], points: list[dict[str, Any]], method: str) -> None:
    """Raise ProtocolError for a result that looks valid but would be wrong."""
    if method == "lora" and states["trained"] == states["parameters"]:
        raise protocol.ProtocolError(
            "memory.method is lora, and every parameter of the model is trained: let the function add the adapters"
        )
    forward = [sum(point["peaks"]["single"]["forward"].values()) for point in points[:2]]
    if forward[0] == forward[1]:
        raise protocol.ProtocolError(
            "the batch does not grow with batch_size: the model was traced at two, to the same bytes"
        )

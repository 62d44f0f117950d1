"""The size of images that a hyperparameter gives: of a model of images, or of what a denoiser makes."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sagefit.job.key import dotted
from sagefit.job.problem import Problem
from sagefit.job.script_names import SIZES
from sagefit.memory.kinds import kinds_of
from sagefit.memory.reader import Reader
from sagefit.memory.told import Told
from sagefit.memory.values import whole
from sagefit.memory.workload import Diffusion, Vision

_LEAST, _MOST = {"vision": 1, "diffusion": 64}, 100_000
M = TypeVar("M")


def sized(reader: Reader, told: Told, model: M) -> M:
    """``model`` with the size that the script is told, unless the memory block says one; both must agree."""
    if not isinstance(model, Vision | Diffusion):
        return model
    kinds = kinds_of(reader.job)
    found = next((at for name, of in SIZES.items() if set(of) & set(kinds) and (at := told.hyperparameter(name))), None)
    if found is None:
        return model
    place, raw = found
    size = _sides(raw, _LEAST["diffusion" if isinstance(model, Diffusion) else "vision"])
    if size is None:
        told.notes.append(f"{dotted(place)}, {str(raw)[:80]!r}, is no size in pixels and not considered")
        return model
    height, width = size
    if isinstance(model, Vision):
        height = width = max(size)
    written = (model.height, model.width) if isinstance(model, Diffusion) else (model.image_size,) * 2
    if not any(written):
        sides = f"{height}" if height == width else f"{height} x {width} pixels"
        told.notes.append(f"{dotted(place)} is {str(raw)[:80]}, so image_size is taken as {sides}")
        changed = {"height": height, "width": width} if isinstance(model, Diffusion) else {"image_size": height}
        return replace(model, **changed)  # type: ignore[arg-type]
    if written != (height, width):
        field = "image_size" if written[0] == written[1] else "height"
        knob = f"set {field}: {height}, or correct the other"
        line = reader.job.line_exactly(place)
        where = dotted(place) + (f" (line {line})" if line else "")
        reader.problems.append(Problem(("memory", "model", field), f"is {written[0]}, and {where} is {raw}", knob))
    return model


def _sides(raw: object, least: int) -> tuple[int, int] | None:
    """Height and width of one side, or of "width,height" as kohya's scripts have it."""
    parts = str(raw).strip().strip("[]()").replace("x", ",").split(",")
    sides = [whole(part.strip()) for part in parts]
    if len(sides) not in (1, 2) or any(side is None or not least <= side <= _MOST for side in sides):
        return None
    return sides[-1] or 0, sides[0] or 0

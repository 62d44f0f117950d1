"""Which model the script is told, beside the one that the memory block names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sagefit.job import Job
from sagefit.job.given import Given
from sagefit.job.problem import Problem
from sagefit.job.script_names import models_in
from sagefit.memory import diffusion, vision
from sagefit.memory.models import resolve
from sagefit.memory.presets import presets
from sagefit.memory.workload import Diffusion, Transformer

_SIZE = re.compile(r"(?<![a-z0-9.])((?:\d+x)?\d+(?:\.\d+)?)([bm])(?![a-z0-9])")


def proposed(job: Job) -> str:
    """How to name the model that a hyperparameter names, where the memory block names none; else empty."""
    given = Given(job)
    for name, model in models_in(given):
        if (job.memory is None or job.memory.model is None) and _known(model) is not None:
            return f"{given.named(name)} names one that is known: memory: {{ model: {model} }}"
    return ""


def other_models(job: Job) -> Iterator[Problem]:
    """A remark on each hyperparameter that names another model than the one that is predicted.

    Two names are of one model where the last parts are the same, where the numbers of both are known and the same, or
    where only one is known and the sizes in the names do not differ.
    """
    written = job.memory.model if job.memory else None
    ours = written if isinstance(written, str) else getattr(written, "name", None)
    if not isinstance(ours, str):
        return
    given = Given(job)
    for name, theirs in models_in(given):
        if not _same(job, ours, theirs):
            message = f"names {theirs}, and memory.model is {ours}, which is what is predicted"
            yield Problem(given.place(name) or ("hyperparameters", name), message, "name the same model in both")


def _same(job: Job, ours: str, theirs: str) -> bool:
    if _last(ours) == _last(theirs):
        return True
    found, known = resolve(job), _known(theirs)
    if found is not None and known is not None:
        mine = found.model
        return (_numbers(mine) if isinstance(mine, Transformer) else _known(ours)) == known
    sizes = _SIZE.findall(_last(ours)), _SIZE.findall(_last(theirs))
    return not all(sizes) or sizes[0] == sizes[1]


def _known(name: str) -> object:
    """What is equal for two names of one model; None for a model that nobody knows."""
    preset = presets().get(name.lower()) or presets().get(_last(name))
    if preset:
        return _numbers(preset.model)
    if diffusion.known(name):
        return diffusion.resolve(Diffusion(name))
    found = vision.find(name)
    return found.model if found else None


def _numbers(model: Transformer) -> tuple[int, ...]:
    """What two checkpoints of one model have in common, also where one is read from its configuration."""
    return model.layers, model.hidden, model.vocab


def _last(name: str) -> str:
    return name.lower().rpartition("/")[2].removesuffix(".pt")

"""Of which kind a job's model is, without reading its numbers: what decides which names of hyperparameters count."""

from __future__ import annotations

from functools import lru_cache

from sagefit.job import Job
from sagefit.job.memory_model import DiffusionModel, TransformerModel, VisionModel
from sagefit.job.script_names import Kind
from sagefit.memory import diffusion, vision
from sagefit.memory.presets import presets


def kinds_of(job: Job) -> tuple[Kind, ...]:
    """The kinds of ``memory.model``; none where it is not named, or of a kind that has no framework's names."""
    given = job.memory.model if job.memory else None
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, TransformerModel):
        return ("language",)
    if isinstance(given, VisionModel):
        return _seeing(given.name)
    return ("diffusion",) if isinstance(given, DiffusionModel) else ()


@lru_cache(maxsize=1024)
def _named(name: str) -> tuple[Kind, ...]:
    if name.lower() in presets():
        return ("language",)
    if diffusion.known(name):
        return ("diffusion",)
    return _seeing(name) if vision.known(name) else ("language",)  # the path of a config.json


def _seeing(name: str) -> tuple[Kind, ...]:
    plain = name.lower()
    return ("vision", "yolo") if "yolo" in plain and "yolos" not in plain else ("vision",)

"""From what a job file says of its model to the model's numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sagefit.job import Job
from sagefit.job.key import Key
from sagefit.job.memory_model import DiffusionModel, MeasuredModel, TabularModel, TransformerModel, VisionModel
from sagefit.job.problem import Problem
from sagefit.memory import diffusion, hub_config, vision
from sagefit.memory.inline import from_numbers
from sagefit.memory.presets import Preset, presets
from sagefit.memory.workload import Diffusion, Measured, Model, Tabular, Transformer, Vision
from sagefit.nearest import nearest

_FIELD: Key = ("memory", "model")
_LARGEST_CONFIG = 10_000_000  # bytes; configurations have a few thousand

_COPIES = frozenset(("unsloth", "nousresearch"))
"""Owners on the Hugging Face Hub who publish other people's weights again, under the same names."""
_QUANTIZED = re.compile(r"(?:-unsloth)?-bnb-(?P<bits>[48])bit$")
"""How names of copies end whose weights bitsandbytes has quantized."""
_VARIANT = re.compile(r"-(?:instruct|thinking|chat|it)(?:-\d{4})?$")
"""How names of checkpoints end that were tuned further, with the month of a later release."""
_WAY_OUT = "give the path of its config.json, or its numbers"


@dataclass(frozen=True)
class Resolved:
    """A model, and assumptions.

    ``sequence`` is the length that every sample has in the encoder, ``positions`` the longest that the model (the
    decoder, if it has one) has positions for; 0 where neither is known or there is no limit. ``four_bit`` says that
    its configuration quantizes it.
    """

    model: Model
    sequence: int = 0
    positions: int = 0
    notes: tuple[str, ...] = ()
    four_bit: bool = False


def resolve(job: Job) -> Resolved | None:
    """The model of the memory block; None when it names none.

    Raises SagefitError for a name nobody knows and for a configuration that cannot be read.
    """
    memory = job.memory
    if memory is None or memory.model is None:
        return None
    given = memory.model
    if isinstance(given, str):
        return _with_head(job, _named(job, given))
    if isinstance(given, TransformerModel):
        model, notes = from_numbers(given)
        return _with_head(job, Resolved(model, notes=tuple(notes)))
    if isinstance(given, VisionModel):
        return _vision(job, given, (*_FIELD, "name"))
    if isinstance(given, DiffusionModel):
        return _diffusion(job, given)
    if isinstance(given, TabularModel):
        return Resolved(Tabular(given.library, given.dtype_bytes, given.copies))
    return _measured(given)


def teacher(job: Job, name: str, field: Key) -> Transformer | None:
    """The decoder that GKD learns from, by its name or the path of its ``config.json``.

    Raises SagefitError where ``memory.teacher_model`` names nothing known; a hyperparameter may name what only the
    script can find, so None then.
    """
    preset, found = presets().get(name.lower()), None
    if preset:
        found = preset.model
    elif path := _path(job, name):
        model = _from_file(job, path, field).model
        found = model if isinstance(model, Transformer) else None
    if found is not None and found.architecture == "decoder":
        return found
    if field[0] != "memory":
        return None
    near = nearest(name, list(presets()), most=3)
    knob = f"did you mean {' or '.join(near)}?" if near else "give the path of its config.json"
    raise job.refusal([Problem(field, f"no decoder is known as {name[:80]!r}, and no file lies there", knob)])


def _measured(given: MeasuredModel) -> Resolved:
    return Resolved(Measured(host_gib=given.host_gib, gpu_gib=given.gpu_gib))


def _named(job: Job, name: str) -> Resolved:
    if preset := presets().get(name.lower()):
        return Resolved(preset.model, preset.sequence, _longest(preset))
    if found := _checkpoint(name):
        return found
    if "://" in name:
        page = re.match(r"https?://(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+)", name)
        knob = "download its config.json, put it beside the job file, and name it here"
        knob = f"did you mean {page[1]}?" if page else knob
        raise job.refusal([Problem(_FIELD, f"{name!r} is no local file, and a model is read from one", knob)])
    if path := _path(job, name):
        return _from_file(job, path)
    if diffusion.known(name):
        return _diffusion(job, DiffusionModel(family="diffusion", name=name))
    return _vision(job, VisionModel(family="vision", name=name), _FIELD)


def _checkpoint(name: str) -> Resolved | None:
    """Another checkpoint of a model that is known: a copy of its weights, quantized or not, or one tuned further."""
    owner, _, copy = name.lower().partition("/")
    quantized = _QUANTIZED.search(copy) if owner in _COPIES else None
    copy = _QUANTIZED.sub("", copy) if quantized else copy
    known = copy if owner in _COPIES else name.lower()
    for plain in (known, _VARIANT.sub("", known)):
        if preset := presets().get(plain):
            why = f"{owner} publishes copies of weights under their own names"
            if plain != known:
                why = "checkpoints that are tuned further have its shapes"
            four_bit = quantized is not None and quantized["bits"] == "4"
            note = f"memory.model {name} is taken as {plain}: {why}"
            return Resolved(preset.model, preset.sequence, _longest(preset), (note,), four_bit)
    return None


def _diffusion(job: Job, given: DiffusionModel) -> Resolved:
    if not diffusion.known(given.name):
        near = nearest(given.name, diffusion.names(), most=3)
        known = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(diffusion.names())}"
        raise job.refusal([Problem((*_FIELD, "name"), f"no denoiser is known as {given.name[:80]!r}", known)])
    height, width = _sides(job, given)
    model = Diffusion(
        name=given.name,
        height=height,
        width=width,
        frames=given.frames or 0,
        encoders=given.encoders,
    )
    if given.frames and given.frames > 1 and diffusion.resolve(model).frames == 1:
        problem = f"{given.name} makes images, which have no frames"
        raise job.refusal([Problem((*_FIELD, "frames"), problem, "leave frames out, or name a denoiser of videos")])
    return Resolved(model)


def _sides(job: Job, given: DiffusionModel | VisionModel) -> tuple[int, int]:
    """Height and width in pixels; 0 where nothing is given."""
    if given.image_size and (given.height or given.width):
        problem = "image_size stands for height and width, and one of them is given too"
        raise job.refusal([Problem((*_FIELD, "image_size"), problem, "give image_size, or height and width")])
    if bool(given.height) != bool(given.width):
        side = "height" if given.height else "width"
        problem = f"{side} is given, and {'width' if given.height else 'height'} is not"
        raise job.refusal([Problem((*_FIELD, side), problem, "give both, or image_size for a square")])
    return given.image_size or given.height or 0, given.image_size or given.width or 0


def _vision(job: Job, given: VisionModel, field: Key) -> Resolved:
    if not vision.known(given.name):
        raise job.refusal([_unknown(given.name, field)])
    height, width = _sides(job, given)
    model = Vision(given.name, round(math.sqrt(height * width)), given.task, given.pretrained, given.classes or 0)
    found = vision.resolve(model)
    if not found.traced and found.model.task != "classification":
        problem = f"{given.name} was made for {found.model.task}"
        raise job.refusal([Problem((*_FIELD, "task"), problem, "remove task, or name the backbone instead")])
    if given.image_size and vision.resizes(found):
        shorter = (
            f"images are taken as {given.image_size} x {given.image_size} pixels; if that is the shorter side, as in"
        )
        return Resolved(model, notes=(f"{shorter} training on COCO, give height and width, such as 800 and 1333",))
    return Resolved(model)


def _unknown(name: str, field: Key) -> Problem:
    known = vision.names() if field != _FIELD else [*presets(), *diffusion.names(), *vision.names()]
    near = nearest(name, known, most=3) or nearest(name.rpartition("/")[2], known, most=3)
    return Problem(
        field,
        f"no model is known as {name[:80]!r}" + (", and no file lies there" if field == _FIELD else ""),
        f"did you mean {' or '.join(near)}? If not, {_WAY_OUT}" if near else _WAY_OUT,
    )


def _from_file(job: Job, path: Path, field: Key = _FIELD) -> Resolved:
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            raise job.refusal([Problem(field, f"{path} is too large for a configuration", "name a config.json")])
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, Mapping):
            raise hub_config.ConfigError("it holds no mapping")
        model, notes = hub_config.transformer(config)
    except hub_config.ConfigError as error:
        knob = "name a config.json of the Hugging Face Hub, or give the numbers with family: transformer"
        raise job.refusal([Problem(field, f"{path}: {error}", knob)]) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not JSON in UTF-8"
        knob = "paths are relative to the job file"
        raise job.refusal([Problem(field, f"{path} cannot be read: {reason}", knob)]) from error
    longest, four_bit = hub_config.longest(config, model), hub_config.is_4_bit(config)
    return Resolved(model, _fixed_sequence(config), longest, tuple(notes), four_bit)


def _longest(preset: Preset) -> int:
    """Positions of a known model by its learned tables; both stacks of an encoder-decoder have one."""
    model, rows = preset.model, preset.positions // preset.model.hidden
    if model.position_bias:  # relative positions have no last one
        return 0
    if preset.sequence:
        return rows - preset.sequence
    return rows // 2 if model.architecture == "encoder-decoder" else rows


def _fixed_sequence(config: Mapping[str, Any]) -> int:
    """Positions of a speech encoder, which pads every sample to its full length (Whisper: 30 s)."""
    given = config.get("max_source_positions")
    return given if isinstance(given, int) and 0 < given < 10**6 else 0


def _with_head(job: Job, resolved: Resolved) -> Resolved:
    """What the model is trained for: encoders classify unless the job says ``head: lm``.

    ``architectures`` of a configuration names the class it was pre-trained with, which says nothing of the job.
    """
    model = resolved.model
    if not isinstance(model, Transformer) or job.memory is None:
        return resolved
    head = job.memory.head
    if head is None and model.architecture == "encoder":
        note = "memory.head is not given; an encoder is taken to classify (head: lm for masked language modelling)"
        return replace(resolved, model=replace(model, head="classification"), notes=(*resolved.notes, note))
    return replace(resolved, model=replace(model, head=head or "lm"))


def _path(job: Job, name: str) -> Path | None:
    """The configuration that ``name`` is the path of; a folder stands for the ``config.json`` in it."""
    try:
        path = job.local(name)
        if name and path.is_dir():
            return path / "config.json"
        return path if name.endswith(".json") or ("/" in name and path.exists()) else None
    except (OSError, ValueError):  # a name that no file system can hold
        return None

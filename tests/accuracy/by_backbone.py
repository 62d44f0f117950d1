"""How far a detector or segmenter that was traced needs more than the factor on its backbone says.

For one that was not traced the planner has that factor alone, and few runs of such were published. Those that were
traced are the measurements here, and the library that a head comes from is the source. ViTDet is not among them: plain
ViTs are traced with it, and no other backbone attends to a whole image in many heads.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from sagefit.memory import Placement, Vision, Workload, vision, vision_models
from sagefit.memory.overhead import peak
from sagefit.memory.vision_models import Found, Model

# Names of traced heads that hold the name of a backbone of the table of classification models.
_BACKBONES = re.compile(
    r"(?:faster_rcnn|deeplabv3|fcn|lraspp|ssd300|(?:conditional-)?detr|upernet)[_-](.+)"
    r"|(?:fasterrcnn|fcos|keypointrcnn|maskrcnn|retinanet)_(.+?)_fpn(?:_v2)?"
)
_BATCHES = (2, 8)


@cache
def ratios(task: str) -> dict[str, list[float]]:
    """Traced over factored peaks of the heads of ``task`` whose backbone was traced too, by library."""
    found: dict[str, list[float]] = defaultdict(list)
    for model, backbone in _pairs(task):
        for precision in ("fp32", "bf16-mixed"):
            for batch in _BATCHES:
                workload = Workload(
                    model=Vision(model.name, model.size), micro_batch=batch, precision=precision, stack="plain-torch"
                )
                traced, factored = (_peak(Found(each, model.size, model.task), workload) for each in (model, backbone))
                found[model.library].append(traced / factored)
    return dict(found)


def _pairs(task: str) -> list[tuple[Model, Model]]:
    """Every head of ``task`` whose backbone is in the table, with it."""
    heads = {(model.library, model.name): model for model in vision_models.table().values() if model.task == task}
    pairs = []
    for _, model in sorted(heads.items()):
        told = _BACKBONES.fullmatch(model.name.removesuffix("@scratch"))
        backbone = vision_models.find((told[1] or told[2]).replace("-", "_")) if told else None
        if backbone and backbone.model.task == "classification":
            pairs.append((model, backbone.model))
    return pairs


def _peak(found: Found, workload: Workload) -> float:
    return peak(vision.phases_of(found, workload, Placement(1, 1, "L40S"), "plain-torch"))

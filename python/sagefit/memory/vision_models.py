"""Vision models by name, from two tables of the same form.

``vision_models.csv``, which ``tools/trace_vision.py`` makes, holds all classification models of timm and torchvision,
traced at their default image size with 1,000 classes. ``vision_heads.csv``, which ``tools/trace_heads.py`` makes, holds
detectors and segmenters, traced with their losses. Sizes are in MiB; ``saved`` and ``half_saved`` (under autocast),
``attention`` and ``evaluation`` are for one image. Columns that end in a number hold what PyTorch's allocator reserves
beyond weights and one optimizer state in steps of that many images: activations, gradients, temporaries and the
workspaces of convolutions. ``buffers`` of a YOLO hold the average of its weights (EMA) that its trainers keep.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, cast

from sagefit.memory.workload import Vision

MIB = 2**20
BATCHES = (1, 8, 32, 128)
FEW = 21  # classes; a segmenter that was traced with more was traced with these too, and does not fall below

Task = Literal["classification", "detection", "segmentation"]

# Names that differ by more than case, separators, a tag or the image size at the end.
_SYNONYMS = {
    "dinov2_small": "vit_small_patch14_dinov2",
    "dinov2_base": "vit_base_patch14_dinov2",
    "dinov2_large": "vit_large_patch14_dinov2",
    "dinov2_giant": "vit_giant_patch14_dinov2",
    "mobilenet": "mobilenetv1_100",
    "mobilenet_v2_1.0": "mobilenet_v2",
    "mobilenet_v3": "mobilenet_v3_large",
    "mobilevit_small": "mobilevit_s",
    "mobilevit_x_small": "mobilevit_xs",
    "mobilevit_xx_small": "mobilevit_xxs",
    "xception": "legacy_xception",
    "inception_resnet": "inception_resnet_v2",
    "vit_base": "vit_base_patch16_224",
    "vit_large": "vit_large_patch16_224",
    "vit_huge": "vit_huge_patch14_224",
    "swin_tiny": "swin_tiny_patch4_window7_224",
    "swin_small": "swin_small_patch4_window7_224",
    "swin_base": "swin_base_patch4_window7_224",
    "swin_large": "swin_large_patch4_window7_224",
}
# Detectors and segmenters of torchvision's names that are not in the table: head, backbone, neck.
_HEADS: dict[str, Task] = {
    **dict.fromkeys(
        ("fasterrcnn", "maskrcnn", "keypointrcnn", "retinanet", "fcos", "ssd300", "ssdlite320"), "detection"
    ),
    **dict.fromkeys(("fcn", "deeplabv3", "lraspp"), "segmentation"),
}
_HEADED = re.compile(rf"({'|'.join(_HEADS)})_(.+?)(_320)?(_fpn(_v2)?)?")
_SIZE = re.compile(r"(.+?)[-_](\d{3})(px)?")
_SIZES = range(192, 1025, 8)  # smaller numbers at the end of a name are multipliers of the width
# What a backbone is taken for where that was traced: Faster R-CNN with a feature pyramid, ViTDet, DeepLabV3, a YOLO
# with masks.
_WITH: dict[Task, tuple[str, ...]] = {
    "detection": ("faster_rcnn_{}", "vitdet_{}"),
    "segmentation": ("deeplabv3_{}", "{}-seg"),
    "classification": (),
}
_SCRATCH = "@scratch"  # the row of a model whose backbone comes without weights, so that nothing of it is frozen
_TAG = re.compile(r"[-_]in\d+k$|[-_]imagenet1k$")


@dataclass(frozen=True)
class Model:
    """A row of the table; bytes, those of ``saved``, ``attention`` and ``evaluation`` for one image.

    ``reserved``, ``half_reserved`` and ``checkpointed`` belong to `BATCHES`; the last is None for a model without a
    switch for activation checkpointing. ``attention`` is the part of ``saved`` that grows with the square of the
    number of tokens. ``task`` is what it was traced with the head of. A segmenter was traced with ``classes``; each
    class that it has less or more takes ``fewer`` off an image or adds ``more``, in fp32 and under autocast.
    """

    name: str
    library: str
    size: int
    parameters: int
    buffers: float
    saved: float
    half_saved: float
    attention: float
    evaluation: float
    reserved: tuple[float, ...]
    half_reserved: tuple[float, ...]
    checkpointed: tuple[float, ...] | None
    task: Task = "classification"
    classes: int = 0
    fewer: tuple[float, float] = (0.0, 0.0)
    more: tuple[float, float] = (0.0, 0.0)

    def beside(self, classes: int, *, mixed: bool) -> float:
        """Bytes that an image takes with another number of classes, beside those that it takes with its own."""
        if not self.classes or not classes:
            return 0.0
        each = self.more if classes > self.classes else self.fewer
        least = FEW if self.classes > FEW else 0
        return each[mixed] * (max(classes, least) - self.classes)


@dataclass(frozen=True)
class Found:
    """A model, the image size and the task. Where that is not the model's own, the model is its backbone."""

    model: Model
    size: int
    task: Task = "classification"

    @property
    def traced(self) -> bool:
        """Whether the step of this very task was traced, and not that of a backbone alone."""
        return self.task == self.model.task


@cache
def table() -> dict[str, Model]:
    """All models as ``library/name``; and by name alone, timm's where both libraries have it."""
    rows: dict[str, Model] = {}
    for row in (*_rows("vision_models.csv"), *_rows("vision_heads.csv")):
        model = _model(row)
        rows[f"{model.library}/{model.name}"] = model
        if model.library == "timm" or model.name not in rows:
            rows[model.name] = model
        rows.update(dict.fromkeys(row.get("names", "").split(), model))
    return rows


def _rows(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _model(row: dict[str, str]) -> Model:
    def size(column: str) -> float:
        return float(row[column]) * MIB

    def sizes(prefix: str) -> tuple[float, ...]:
        return tuple(size(f"{prefix}{batch}") for batch in BATCHES)

    return Model(
        name=row["name"],
        library=row["library"],
        size=int(row["size"]),
        parameters=int(row["parameters"]),
        buffers=size("buffers"),
        saved=size("saved"),
        half_saved=size("half_saved"),
        attention=size("attention"),
        evaluation=size("evaluation"),
        reserved=sizes(""),
        half_reserved=sizes("half_"),
        checkpointed=sizes("checkpointed_") if row.get("checkpointed_1") else None,
        task=cast("Task", row.get("task", "classification")),
        classes=int(row.get("classes", 0)),
        fewer=(float(row.get("fewer", 0)) * MIB, float(row.get("half_fewer", 0)) * MIB),
        more=(float(row.get("more", 0)) * MIB, float(row.get("half_more", 0)) * MIB),
    )


@cache
def _by_plain_name() -> dict[str, Model]:
    plain: dict[str, Model] = {}
    for name, model in table().items():
        plain.setdefault(_plain(name), model)
    return plain


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name)


def names() -> list[str]:
    """All names of the tables, without their library."""
    return sorted({model.name for model in table().values() if not model.name.endswith(_SCRATCH)})


def known(name: str) -> bool:
    """Whether `find` knows ``name``."""
    return find(name) is not None


@lru_cache(maxsize=4096)
def find(name: str) -> Found | None:
    """The model that ``name`` means: of timm, torchvision or Ultralytics, or of the Hugging Face Hub.

    Case and separators do not matter; an organisation before it and a tag behind it are left away
    (``timm/resnet50.a1_in1k``, ``google/vit-base-patch16-224-in21k``), a size at the end is that of the images.
    """
    if _SCRATCH in name:
        return None
    lower = name.lower().removeprefix("hf_hub:").removeprefix("hf-hub:")
    bare = lower if lower in table() else lower.rpartition("/")[2]
    candidates = [bare, _TAG.sub("", bare), bare.partition(".")[0]]
    for candidate in candidates:
        if model := _named(candidate):
            return Found(model, model.size, model.task)
    for candidate in candidates:
        sized = _SIZE.fullmatch(candidate)
        if sized and int(sized[2]) in _SIZES and (model := _named(sized[1])):
            return Found(model, int(sized[2]), model.task)
        if (headed := _HEADED.fullmatch(candidate)) and (model := _named(headed[2])):
            return Found(model, model.size, _HEADS[headed[1]])
    return None


def _named(name: str) -> Model | None:
    name = _SYNONYMS.get(name.replace("-", "_"), name)
    return table().get(name) or _by_plain_name().get(_plain(name))


_SHORTER = 800
# The side of a square with the pixels of 800 x 1333, to which detectors resize the photographs of COCO: torchvision's
# GeneralizedRCNNTransform, detectron2's ResizeShortestEdge, MMDetection's configurations, DETR.
_LANDSCAPE = 1033


def resolve(vision: Vision) -> Found:
    """The model of a workload with its image size and task; raises KeyError for a name that is not `known`."""
    found = find(vision.name)
    if found is None:
        raise KeyError(vision.name)
    model, size = found.model, found.size
    task = found.task if vision.task == "classification" else vision.task
    if task != model.task and (other := _of_task(model, task)):
        size = other.size if size == model.size else size
        model = other
    if not vision.pretrained:
        model = table().get(f"{model.name}{_SCRATCH}", model)
    found = Found(model, vision.image_size or size, task)
    return replace(found, size=_LANDSCAPE) if not vision.image_size and resizes(found) else found


def resizes(found: Found) -> bool:
    """Whether it is a detector whose photographs usually have a shorter side of 800 pixels and a longer of 1,333."""
    if found.task != "detection":
        return False
    return not found.traced or (found.model.size == _SHORTER and found.model.library not in ("ultralytics", "yolov5"))


def _of_task(model: Model, task: Task) -> Model | None:
    """The row of ``model`` with the head of ``task``, where there is one."""
    named = (table().get(name.format(model.name)) for name in _WITH[task])
    return next((other for other in named if other and other.task == task), None)


def default_image_size(name: str) -> int:
    """Pixels on a side that ``name`` was traced with, or that its name says; raises KeyError if it is not `known`."""
    return resolve(Vision(name, 0)).size

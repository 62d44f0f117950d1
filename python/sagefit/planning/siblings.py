"""Smaller models of the same kind that may be enough for a job: suggested when nothing fits, never used by itself.

A distilled or smaller model learns less. How much less depends on the job's task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sagefit.memory import Transformer, Vision, vision
from sagefit.memory.presets import presets

#: From large to small. Distilled models: Sanh et al. 2019 (DistilBERT, and with it DistilRoBERTa and DistilGPT2).
_FAMILIES = tuple(
    family.split()
    for family in (
        "bert-large-uncased bert-base-uncased distilbert-base-uncased",
        "bert-large-cased bert-base-cased distilbert-base-cased",
        "bert-base-multilingual-cased distilbert-base-multilingual-cased",
        "roberta-large roberta-base distilroberta-base",
        "xlm-roberta-large xlm-roberta-base",
        "deberta-v3-large deberta-v3-base deberta-v3-small deberta-v3-xsmall",
        "gpt2-xl gpt2-large gpt2-medium gpt2 distilgpt2",
        "resnet152 resnet101 resnet50 resnet34 resnet18 mobilenetv3_small_100",
        "vit_large_patch16_224 vit_base_patch16_224 vit_small_patch16_224 vit_tiny_patch16_224",
        "yolov5x yolov5l yolov5m yolov5s yolov5n",
        "yolov8x yolov8l yolov8m yolov8s yolov8n",
        "yolo11x yolo11l yolo11m yolo11s yolo11n",
        "yolo12x yolo12l yolo12m yolo12s yolo12n",
        "rtdetr_r101vd rtdetr_r50vd rtdetr_r34vd rtdetr_r18vd",
        "segformer-b5 segformer-b4 segformer-b3 segformer-b2 segformer-b1 segformer-b0",
    )
)


def smaller(model: object) -> Iterator[tuple[str, Transformer | Vision]]:
    """The smaller models of the family of ``model`` by name, the largest first, for the same task and pictures."""
    if isinstance(model, Transformer):
        for name in _after(model.name.lower().rpartition("/")[2]):
            yield name, replace(presets()[name].model, head=model.head)
    elif isinstance(model, Vision):
        found = vision.resolve(model)
        if found.traced:
            for name in _after(found.model.name):
                yield name, replace(model, name=name)


def _after(name: str) -> list[str]:
    return next((family[family.index(name) + 1 :] for family in _FAMILIES if name in family), [])

"""Smaller models of the same kind: known, in order, said when nothing fits, and never an attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.memory import Vision, vision
from sagefit.memory.presets import presets
from sagefit.memory.workload import Transformer
from sagefit.planning import JobPlan, plan
from sagefit.planning.siblings import _FAMILIES, smaller
from sagefit.size import size_job

JOB = """
platform: dev
code: {{ source_dir: code, entry_point: train.py }}
image: {{ framework: huggingface, version: "4.56" }}
hyperparameters: {{ batch_size: {batch} }}
resources: {{ instance_type: {type}, max_runtime: 1h }}
memory: {{ model: {model}, stack: plain-torch }}
"""


def job_of(folder: Path, model: str, *, batch: int, type: str = "ml.g4dn.xlarge"):  # type: ignore[no-untyped-def]
    (folder / "code").mkdir()
    (folder / "code" / "train.py").touch()
    path = folder / "job.yaml"
    path.write_text(JOB.format(model=model, batch=batch, type=type))
    return load_job(str(path))


@pytest.mark.parametrize("family", _FAMILIES, ids=lambda family: family[0])
def test_every_model_of_a_family_is_known_and_smaller_than_the_one_before(family: list[str]) -> None:
    sizes = [presets()[n].model.params if n in presets() else vision.find(n).model.parameters for n in family]  # type: ignore[union-attr]
    assert sizes == sorted(sizes, reverse=True)


def test_what_follows_in_the_family_is_for_the_same_task() -> None:
    bert = presets()["google-bert/bert-base-uncased"].model
    classifier = Transformer(**{**bert.__dict__, "head": "classification"})
    ((name, distilled),) = smaller(classifier)
    assert name == "distilbert-base-uncased"
    assert isinstance(distilled, Transformer)
    assert (distilled.layers, distilled.head) == (6, "classification")
    pictures = dict(smaller(Vision("timm/resnet50.a1_in1k", 320)))
    assert pictures["resnet18"] == Vision("resnet18", 320)
    assert not list(smaller(Vision("resnet50", 224, "detection")))


@pytest.mark.parametrize(
    ("model", "batch", "name"),
    [
        ("bert-large-uncased", 32, "distilbert-base-uncased"),
        ("{ family: vision, name: resnet50, image_size: 224 }", 192, "resnet34"),
    ],
    ids=["BERT", "ResNet"],
)
def test_a_smaller_model_is_advice_and_the_last(tmp_path: Path, model: str, batch: int, name: str) -> None:
    job = job_of(tmp_path, model, batch=batch)
    advice = size_job(JobPlan(job), REFERENCE_REGION).advice
    assert [each.other_model for each in advice] == [False] * (len(advice) - 1) + [True]
    assert f"memory.model: {name}" in advice[-1].text
    assert advice[-1].fit.verdict == "FITS"
    assert advice[-1].gpu_gib > 5
    with pytest.raises(SagefitError, match="is sure to hold it") as refused:
        plan(job)
    assert name in str(refused.value.hint)


def test_a_smaller_model_is_never_an_attempt(tmp_path: Path) -> None:
    job = job_of(tmp_path, "bert-large-uncased", batch=8, type="auto")
    assert all("model" not in attempt.hyperparameters for attempt in plan(job).attempts)

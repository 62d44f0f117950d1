"""The checks see the training jobs that a tuning job makes."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from sagefit.paths import ROOT


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The checks' own reader of definitions, which lives outside of the package."""
    monkeypatch.syspath_prepend(str(ROOT / "policies" / "checks"))
    return importlib.import_module("sagefit_machine")


def submit(target: str) -> dict[str, Any]:
    """A state that asks for a tuning job of spot instances."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:sagemaker:createHyperParameterTuningJob",
        "Parameters": {
            "TrainingJobDefinition": {"EnableManagedSpotTraining": True},
            "Tags": [{"Key": "sagefit:memory-percent", "Value": "95"}],
        },
        "Next": target,
    }


def test_a_tuning_job_is_a_request_for_training_jobs(reader: Any) -> None:
    [request] = reader.requests({"States": {"first: submit": submit("done"), "done": {"Type": "Succeed"}}})
    assert request.get("EnableManagedSpotTraining") is True
    assert request.tags == {"sagefit:memory-percent": "95"}


def test_a_search_that_follows_itself_is_endless(reader: Any) -> None:
    assert reader.endless({"States": {"first: submit": submit("first: submit")}}) == ["first: submit"]
    assert reader.endless({"States": {"first: submit": submit("done"), "done": {"Type": "Succeed"}}}) == []

"""Runs of a job with processing steps, walked through its definition: what follows each way that a step can end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from proofs.planned import Planned
from scenarios.walker import CallError, walk

pytestmark = pytest.mark.xdist_group("plans")

RUN = "steps-261121-120000"
DONE: dict[str, Any] = {"ProcessingJobStatus": "Completed"}
INTERNAL = {"ProcessingJobStatus": "Failed", "FailureReason": "InternalServerError: We encountered an internal error."}


class SageMaker:
    """Answers requests for processing jobs with outcomes in turn; every training job completes."""

    def __init__(self, *outcomes: dict[str, Any] | CallError) -> None:
        self._outcomes: Iterator[dict[str, Any] | CallError] = iter(outcomes)
        self._ends: dict[str, dict[str, Any]] = {}
        self.created: list[str] = []

    def __call__(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        name = request.get("ProcessingJobName") or request["TrainingJobName"]
        if action.startswith("create"):
            outcome = DONE if "TrainingJobName" in request else next(self._outcomes, DONE)
            self.created.append(name)
            if isinstance(outcome, CallError):
                raise outcome
            self._ends[name] = outcome
            return {}
        if action == "describeProcessingJob":
            return {"ProcessingJobName": name} | self._ends[name]
        model = {"S3ModelArtifacts": "s3://b/model.tar.gz"}
        ended = {"TrainingJobStatus": "Completed", "SecondaryStatus": "Completed", "ModelArtifacts": model}
        return {"TrainingJobName": name} | ended


def run(planned: Planned, *outcomes: dict[str, Any] | CallError) -> tuple[list[str], str, Any]:
    sagemaker = SageMaker(*outcomes)
    status, said = walk(planned.definitions()["steps"], RUN, sagemaker)
    return [name.removeprefix(f"{RUN}-") for name in sagemaker.created], status, said


def test_steps_run_in_order_and_the_first_attempt_after_them(planned: Planned) -> None:
    created, status, output = run(planned)
    assert (created, status) == (["p0", "p1", "0"], "SUCCEEDED")
    assert output["model"] == "s3://b/model.tar.gz"


@pytest.mark.parametrize(
    ("end", "failure", "evidence"),
    [
        (
            {"ProcessingJobStatus": "Failed", "FailureReason": "AlgorithmError: , exit code: 1"},
            "code",
            "AlgorithmError: , exit code: 1",
        ),
        (
            {
                "ProcessingJobStatus": "Failed",
                "FailureReason": "AlgorithmError: See job logs",
                "ExitMessage": "java.lang.OutOfMemoryError: Java heap space",
            },
            "host_memory",
            "AlgorithmError: See job logs: java.lang.OutOfMemoryError: Java heap space",
        ),
        (
            {"ProcessingJobStatus": "Failed", "FailureReason": "CapacityError: Unable to provision"},
            "capacity",
            "CapacityError: Unable to provision",
        ),
        ({"ProcessingJobStatus": "Stopped"}, "stopped", "Stopped"),
        ({"ProcessingJobStatus": "Stopped", "ExitMessage": "half done"}, "stopped", "Stopped"),
    ],
    ids=["reason", "reason-and-message", "capacity", "stopped", "stopped-with-message"],
)
def test_a_step_that_fails_ends_the_run_with_its_class(
    planned: Planned, end: dict[str, Any], failure: str, evidence: str
) -> None:
    created, status, (error, cause) = run(planned, DONE, end)
    assert (created, status, error) == (["p0", "p1"], "FAILED", f"Sagefit.{failure}")
    noted = json.loads(cause)["p1"]
    assert noted["attempt"] == "processing split"
    assert noted["training_job"] == f"{RUN}-p1"
    assert noted["evidence"] == evidence


def test_what_passes_is_waited_out(planned: Planned) -> None:
    throttled = CallError("SageMaker.ThrottlingException", "Rate exceeded")
    created, status, _ = run(planned, throttled, throttled)
    assert (created, status) == (["p0", "p0", "p0", "p1", "0"], "SUCCEEDED")
    created, status, (error, _) = run(planned, *[throttled] * 20)
    assert (set(created), status, error) == ({"p0"}, "FAILED", "Sagefit.internal")


def test_a_granted_request_is_not_repeated(planned: Planned) -> None:
    sagemaker = SageMaker(CallError("SageMaker.ResourceInUseException", "ResourceInUse: it is there already"))
    sagemaker._ends[f"{RUN}-p0"] = DONE
    status, _ = walk(planned.definitions()["steps"], RUN, sagemaker)
    assert status == "SUCCEEDED"
    assert sagemaker.created[:2] == [f"{RUN}-p0", f"{RUN}-p1"]


def test_errors_of_aws_are_repeated_under_other_names_and_what_follows_has_its_own(planned: Planned) -> None:
    created, status, _ = run(planned, INTERNAL, INTERNAL)
    assert (created, status) == (["p0", "p0b", "p0c", "p1", "0"], "SUCCEEDED")
    created, status, (error, cause) = run(planned, *[INTERNAL] * 3)
    assert (created, status, error) == (["p0", "p0b", "p0c"], "FAILED", "Sagefit.internal")
    assert json.loads(cause)["p0"]["repeats"] == [f"{RUN}-p0", f"{RUN}-p0b"]


def test_another_refusal_ends_the_run(planned: Planned) -> None:
    created, status, (error, cause) = run(planned, CallError("SageMaker.ResourceLimitExceeded", "0 Instances"))
    assert (created, status, error) == (["p0"], "FAILED", "Sagefit.quota")
    assert json.loads(cause)["p0"]["evidence"] == "SageMaker.ResourceLimitExceeded: 0 Instances"


@pytest.mark.parametrize("name", ["8d3f2c1e-9a47-4b7e-8f0a-6f1f0c2d3e4f", "steps", "steps-1", "other-261121-120000"])
def test_a_run_with_a_name_of_no_run_ends_before_it_begins(planned: Planned, name: str) -> None:
    sagemaker = SageMaker()
    status, (error, cause) = walk(planned.definitions()["steps"], name, sagemaker)
    assert (sagemaker.created, status, error) == ([], "FAILED", "Sagefit.name")
    assert "steps-<yymmdd>-<hhmmss>" in cause

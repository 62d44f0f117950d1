"""Every run ends: random graphs and random outcomes, walked through the definition as Terraform applied it."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagefit.failures import CLASSES
from sagefit.planning.cost import REPEATS
from scenarios.conftest import TABLE, Cloud
from scenarios.walker import CallError, walk

pytestmark = pytest.mark.xdist_group("scenarios")

RUN = "rich-261121-120000"
PATIENCE = 8
OUTCOMES = [outcome["fault"] for outcome in TABLE["outcomes"].values() if "throttle" not in outcome["fault"]]
OUTCOMES += [{"status": "Completed"}, {"api_error": "ResourceInUse", "message": "it is there already"}]
THROTTLED = {"api_error": "ThrottlingException", "message": "Rate exceeded"}  # after the task's own retries


@pytest.fixture(scope="module")
def definition(cloud: Cloud) -> dict[str, Any]:
    """The definition of the job with many attempts, read back from Step Functions."""
    machines = cloud.client("stepfunctions")
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:sagefit-dev-rich"
    found: dict[str, Any] = json.loads(machines.describe_state_machine(stateMachineArn=arn)["definition"])
    return found


def attempts_of(definition: dict[str, Any]) -> list[str]:
    """Names of its attempts in order."""
    return [rule["Next"].removesuffix(": submit") for rule in definition["States"]["again"]["Choices"]]


@st.composite
def graphs(draw: st.DrawFn) -> list[dict[str, int]]:
    """For each of up to fourteen attempts, how far forward each class leads."""
    count = draw(st.integers(1, 14))
    classes = st.sampled_from([name for name in CLASSES if name != "stopped"])
    return [draw(st.dictionaries(classes, st.integers(1, count))) for _ in range(count)]


def rewired(definition: dict[str, Any], graph: list[dict[str, int]]) -> dict[str, Any]:
    """The same definition with other edges, in the form the module writes them."""
    changed = copy.deepcopy(definition)
    names = attempts_of(definition)[: len(graph)]
    first = [rule for rule in changed["States"][f"{names[0]}: next"]["Choices"] if rule["Variable"] != "$.class"]
    for index, (name, edges) in enumerate(zip(names, graph, strict=True)):
        rules = first + [
            {"Variable": "$.class", "StringEquals": failure, "Next": f"{names[index + step]}: submit"}
            for failure, step in edges.items()
            if index + step < len(names)
        ]
        changed["States"][f"{name}: next"] = {"Type": "Choice", "Choices": rules, "Default": "failed"}
        changed["States"][f"{name}: ended"]["Next"] = f"{name}: next"
    return changed


class SageMaker:
    """Answers calls with outcomes in turn, over and over."""

    def __init__(self, outcomes: list[dict[str, Any]]) -> None:
        self._outcomes = itertools.cycle(outcomes)
        self._ends: dict[str, dict[str, Any]] = {}
        self.requests = 0

    @property
    def created(self) -> list[str]:
        """Names of its training jobs."""
        return list(self._ends)

    def __call__(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        name = request["TrainingJobName"]
        if action == "createTrainingJob":
            self.requests += 1
            outcome = next(self._outcomes)
            if name in self._ends:
                raise CallError("SageMaker.ResourceInUseException", "Training job names must be unique")
            exists = outcome.get("created") or outcome.get("api_error") == "ResourceInUse"
            if exists or "api_error" not in outcome:
                self._ends[name] = {"status": "Completed"} if exists else outcome
            if "api_error" in outcome:
                raise CallError(f"SageMaker.{outcome['api_error']}", outcome.get("message", ""))
            return {"TrainingJobArn": name}
        assert action == "describeTrainingJob"
        return {"TrainingJobName": name} | self._state(self._ends[name])

    @staticmethod
    def _state(end: dict[str, Any]) -> dict[str, Any]:
        if "stopped" in end:
            return {"TrainingJobStatus": "Stopped", "SecondaryStatus": end["stopped"]}
        if end.get("status") == "Failed":
            return {
                "TrainingJobStatus": "Failed",
                "SecondaryStatus": "Failed",
                "FailureReason": end["failure_reason"],
            }
        model = {"S3ModelArtifacts": "s3://b/model.tar.gz"}
        return {"TrainingJobStatus": "Completed", "SecondaryStatus": "Completed", "ModelArtifacts": model}


@settings(max_examples=150, deadline=None)
@given(graph=graphs(), outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=12))
def test_every_run_ends(
    definition: dict[str, Any], graph: list[dict[str, int]], outcomes: list[dict[str, Any]]
) -> None:
    sagemaker = SageMaker(outcomes)
    status, said = walk(rewired(definition, graph), RUN, sagemaker)
    assert len(sagemaker.created) <= len(graph) * (1 + REPEATS)
    assert sagemaker.requests <= len(graph) * (1 + REPEATS + PATIENCE)
    assert status == "SUCCEEDED" or said[0].removeprefix("Sagefit.") in CLASSES


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_the_same_outcome_for_ever_ends_too(definition: dict[str, Any], outcome: dict[str, Any]) -> None:
    count = len(attempts_of(definition))
    chain = [dict.fromkeys((name for name in CLASSES if name != "stopped"), 1) for _ in range(count)]
    sagemaker = SageMaker([outcome])
    status, _ = walk(rewired(definition, chain), RUN, sagemaker)
    ends_well = (
        outcome.get("status") == "Completed" or outcome.get("created") or outcome.get("api_error") == "ResourceInUse"
    )
    assert status == ("SUCCEEDED" if ends_well else "FAILED")
    if outcome.get("failure_reason", "").startswith("InternalServerError"):
        assert len(sagemaker.created) == count * (1 + REPEATS)


@pytest.mark.parametrize(
    ("error", "ends_as"),
    [
        (CallError("SageMaker.SageMakerException", "Rate exceeded (Service: SageMaker, Status Code: 400)"), "internal"),
        (CallError("SageMaker.SageMakerException", "x is not authorized to perform: y"), "permission"),
        (CallError("States.Runtime"), "code"),
    ],
    ids=["throttled", "forbidden", "without a cause"],
)
def test_nothing_starts_beside_a_job_that_is_out_of_sight(
    definition: dict[str, Any], error: CallError, ends_as: str
) -> None:
    """Whatever the edges say: it may still train, and cost money."""
    edges = {name: 1 for name in CLASSES if name != "stopped"}
    created: list[str] = []

    def sagemaker(action: str, request: dict[str, Any]) -> dict[str, Any]:
        if action == "createTrainingJob":
            created.append(request["TrainingJobName"])
            return {"TrainingJobArn": request["TrainingJobName"]}
        raise error

    status, (name, record) = walk(rewired(definition, [edges, edges, {}]), RUN, sagemaker)
    assert (status, name, created) == ("FAILED", f"Sagefit.{ends_as}", [f"{RUN}-0"])
    note = json.loads(record)["0"]
    assert (note["training_job"], note["evidence"]) == (f"{RUN}-0", ": ".join(error.args))


def test_each_attempt_has_all_its_tries(definition: dict[str, Any]) -> None:
    """An account that is throttled for a while does not use up the patience of the attempts that follow."""
    end = {"status": "Failed", "failure_reason": "AlgorithmError: CUDA out of memory"}
    sagemaker = SageMaker([*[THROTTLED] * PATIENCE, end, *[THROTTLED] * PATIENCE, {"status": "Completed"}])
    assert walk(rewired(definition, [{"gpu_memory": 1}, {}]), RUN, sagemaker)[0] == "SUCCEEDED"
    assert (sagemaker.requests, sagemaker.created) == (2 * (PATIENCE + 1), [f"{RUN}-0", f"{RUN}-1"])


def test_throttling_without_end_is_internal(definition: dict[str, Any]) -> None:
    sagemaker = SageMaker([THROTTLED])
    assert walk(rewired(definition, [{}]), RUN, sagemaker)[1][0] == "Sagefit.internal"
    assert (sagemaker.requests, sagemaker.created) == (1 + PATIENCE, [])

"""A planned tuning job: a request that the API takes, and a page that tells what is searched and what it can cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proofs.planned import Planned
from review.plans import change, found, reviewed
from sagefit.job import load_job
from sagefit.machine import graph
from sagefit.machine.definition import read_definition
from sagefit.paths import ROOT
from sagefit.planning import plan, worst_case_usd
from sagefit.reviewing import as_json, markdown
from sagefit_cloud import validation

pytestmark = pytest.mark.xdist_group("plans")

JOB = ROOT / "examples" / "tuning" / "tuning.yaml"
ARN = "arn:aws:logs:us-east-1:123456789012:log-group:/aws/vendedlogs/states/x:*"


def state_machine(before: Any, after: Any) -> dict[str, Any]:
    """The change of the job's state machine."""
    old, new = (
        None if side is None else {"definition": json.dumps(side), "logging_configuration": [{"log_destination": ARN}]}
        for side in (before, after)
    )
    return change("module.job.aws_sfn_state_machine.this", old, new, module_address="module.job")


def test_requests_are_what_the_api_takes(planned: Planned) -> None:
    """Every field exists in botocore's model of the service and is within its limits."""
    requests = [p for action, p in graph.calls(planned.definitions()["tuning"]) if action.startswith("createHyper")]
    assert len(requests) == 2
    for request in requests:
        named = {key: value for key, value in request.items() if not key.endswith(".$")}
        named["HyperParameterTuningJobName"] = "tuning-261121-120000-0b"
        assert validation.problems_of("sagemaker", "CreateHyperParameterTuningJob", named) == []


def test_a_definition_is_read_back(planned: Planned) -> None:
    read = read_definition(json.dumps(planned.definitions()["tuning"]))
    job = load_job(str(JOB))
    assert read is not None
    assert read.strange == ()
    assert [attempt.tuning for attempt in read.attempts] == [job.tuning, job.tuning]
    assert read.words["code.entry_point"] == "train.py"
    assert read.words["tuning.ranges.kernel"] == "rbf, poly"
    assert read.words["tuning.ranges.components"] == "10 to 60, Auto"
    assert [attempt.hyperparameters for attempt in read.attempts] == [{"shifts": "true"}, {"shifts": "false"}]
    usd = worst_case_usd(plan(job).attempts, "us-east-1", packaged=True)
    assert worst_case_usd(read.attempts, "us-east-1", packaged=True) == pytest.approx(usd)


def test_the_page_of_a_new_job_tells_what_it_searches(planned: Planned) -> None:
    page = markdown(reviewed(state_machine(None, planned.definitions()["tuning"])))
    assert "| `tuning.ranges.gamma` | - | `0.001 to 1.0, Logarithmic` |" in page
    assert "| `tuning.max_jobs` | - | `4` |" in page
    assert "4 x 5 min" in page


def test_a_larger_search_is_a_higher_price(planned: Planned) -> None:
    before = planned.definitions()["tuning"]
    after = json.loads(json.dumps(before).replace('"MaxNumberOfTrainingJobs": 4', '"MaxNumberOfTrainingJobs": 40'))
    report = as_json(reviewed(state_machine(before, after)))
    [job] = report["jobs"]
    assert job["cost"]["worst_case_usd"] == pytest.approx(10 * job["cost_before"]["worst_case_usd"], rel=1e-2)
    assert "job-price-grown" in [rule for rule, _ in found(state_machine(before, after))]


def test_attempts_that_search_differently_are_told(planned: Planned) -> None:
    changed = planned.definitions()["tuning"]
    changed["States"]["plain: submit"]["Parameters"]["HyperParameterTuningJobConfig"]["Strategy"] = "Bayesian"
    page = markdown(reviewed(state_machine(None, changed)))
    assert "HyperParameterTuningJobConfig" in page

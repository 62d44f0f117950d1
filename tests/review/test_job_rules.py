"""A job judged as money and as supply chain: Sagefit's own machines, and anybody's, with attempts as data too."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from review.plans import change, found, reviewed
from review.test_jobs import ARN, definition
from sagefit.reviewing import Tuning, as_json, markdown
from sagefit.reviewing.jobs.asked import asked

OWN, OTHER = "123456789012", "999900001111"
ROLE = f"arn:aws:iam::{OWN}:role/states"
MACHINE = "module.job.aws_sfn_state_machine.this"
IMAGE = f"{OWN}.dkr.ecr.us-east-1.amazonaws.com/train"
DIGEST = f"{IMAGE}@sha256:{'0' * 64}"


def job(edit: Callable[[dict[str, Any]], object] = lambda _: None, max_price: str | None = None) -> dict[str, Any]:
    """The attributes of a machine of Sagefit; ``edit`` changes each request of its two attempts."""
    made = definition(name="no-such-job", types=("ml.m5.large", "ml.m5.xlarge"))
    for state in made["States"].values():
        if request := state.get("Parameters"):
            request |= {
                "RoleArn": ROLE,
                "AlgorithmSpecification": {"TrainingImage": DIGEST},
                "InputDataConfig": [
                    {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://data/train/"}}}
                ],
                "OutputDataConfig": {"S3OutputPath": "s3://models/", "KmsKeyId": f"arn:aws:kms:eu-west-1:{OWN}:key/1"},
                "RetryStrategy": {"MaximumRetryAttempts": 1},
            }
            edit(request)
    return {
        "name": "m",
        "role_arn": ROLE,
        "definition": json.dumps(made),
        "tags": {"sagefit:max-price-usd": max_price} if max_price else {},
        "logging_configuration": [{"log_destination": ARN}],
    }


def judged(before: Any, after: Any, *others: dict[str, Any], **fields: Any) -> list[tuple[str, str]]:
    return found(change(MACHINE, before, after, module_address="module.job"), *others, **fields)


def schedule(before: Any, after: Any) -> dict[str, Any]:
    return change("module.job.aws_scheduler_schedule.this[0]", before, after, module_address="module.job")


def hourly(state: str = "ENABLED") -> dict[str, str]:
    return {"schedule_expression": "rate(1 hour)", "schedule_expression_timezone": "UTC", "state": state}


def _set(*path: str, value: Any) -> Callable[[dict[str, Any]], object]:
    def edit(request: dict[str, Any]) -> None:
        at = request
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = value

    return edit


def _image(uri: str) -> Callable[[dict[str, Any]], object]:
    return _set("AlgorithmSpecification", "TrainingImage", value=uri)


def _dear(request: dict[str, Any]) -> None:
    request["ResourceConfig"] |= {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 8}
    request["StoppingCondition"]["MaxRuntimeInSeconds"] = 4 * 86400


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (_image(f"{OTHER}.dkr.ecr.us-east-1.amazonaws.com/train@sha256:{'0' * 64}"), ("job-image-foreign", "high")),
        (_image("docker.io/library/train:1"), ("job-image-foreign", "high")),
        (_image(f"{IMAGE}:v2"), ("job-image-unpinned", "medium")),
        (_image(f"{IMAGE}:latest"), ("job-image-unpinned", "medium")),
        (_set("InputDataConfig", value=[{"ChannelName": "train", "DataSource": {"S3DataSource": {
            "S3Uri": "s3://elses/"}}}]), ("job-input-foreign", "medium")),
        (_set("OutputDataConfig", "S3OutputPath", value="s3://elses/"), ("job-output-moved", "medium")),
        (_set("OutputDataConfig", "KmsKeyId", value=f"arn:aws:kms:eu-west-1:{OWN}:key/2"),
         ("job-key-changed", "medium")),
        (_set("OutputDataConfig", "KmsKeyId", value=f"arn:aws:kms:eu-west-1:{OTHER}:key/2"),
         ("job-key-changed", "high")),
        (_set("RoleArn", value=f"arn:aws:iam::{OWN}:role/admin"), ("job-role-changed", "medium")),
        (_set("RoleArn", value=f"arn:aws:iam::{OTHER}:role/admin"), ("job-role-changed", "high")),
        (_set("RetryStrategy", "MaximumRetryAttempts", value=30), ("job-retries-grown", "medium")),
        (_set("ResourceConfig", "KeepAlivePeriodInSeconds", value=3600), ("job-pool-grown", "medium")),
        (_dear, ("job-price-high", "high")),
    ],
)  # fmt: skip
def test_an_edit_of_a_job_is_found_and_the_way_back_is_not(
    edit: Callable[[dict[str, Any]], object], expected: tuple[str, str]
) -> None:
    assert expected in judged(job(), job(edit))
    assert judged(job(edit), job(edit)) == []
    back = judged(job(edit), job())
    two_ways = ("job-image-foreign", "job-input-foreign", "job-output-moved", "job-key-changed", "job-role-changed")
    assert expected[0] in two_ways or expected[0] not in [rule for rule, _ in back], "another place is another place"


@pytest.mark.parametrize(
    "edit",
    [
        _image(f"{IMAGE}@sha256:{'1' * 64}"),
        _image("763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training@sha256:" + "1" * 64),
        _set("InputDataConfig", value=[]),
        _set("RetryStrategy", "MaximumRetryAttempts", value=2),
        _set("ResourceConfig", "KeepAlivePeriodInSeconds", value=600),
        _set("HyperParameters", "learning_rate", value="3e-05"),
    ],
)
def test_a_routine_edit_is_not_found(edit: Callable[[dict[str, Any]], object]) -> None:
    assert judged(job(), job(edit)) == []


def test_a_new_job_is_judged_by_what_it_costs_and_by_its_image() -> None:
    assert judged(None, job()) == []
    assert judged(None, job(_dear)) == [("job-price-high", "high")]
    foreign = _image(f"{OTHER}.dkr.ecr.us-east-1.amazonaws.com/train:1")
    assert ("job-image-foreign", "high") in judged(None, job(foreign))
    assert judged(None, job(_image(f"{IMAGE}:latest"))) == [("job-image-unpinned", "low")]


def test_a_repository_says_what_a_run_and_a_month_may_cost() -> None:
    entry = change(MACHINE, None, job(_dear), module_address="module.job")
    rules = [[f.rule for f in reviewed(entry, tuning=Tuning(usd_per_run=usd)).findings] for usd in (None, 1e6, 1e4)]
    assert rules == [[], [], ["job-price-high"]]


def test_a_schedule_is_told_by_the_month() -> None:
    often = schedule(None, hourly())
    assert judged(None, job(), often) == []
    assert judged(job(), job(_set("X", value=1)), often) == [("job-schedule-more", "medium")]
    assert judged(job(), job(_set("X", value=1)), schedule(hourly("DISABLED"), hourly())) == [
        ("job-schedule-more", "medium")
    ]
    alone = change(MACHINE, job(), job(), "no-op", module_address="module.job")
    assert found(alone, often) == [("job-schedule-more", "medium")], "the machine itself need not change"
    assert found(alone) == []
    rarer = {**hourly(), "schedule_expression": "rate(1 day)"}
    assert judged(job(), job(_set("X", value=1)), schedule(hourly(), rarer)) == []
    review = reviewed(
        change(MACHINE, None, job(_dear), module_address="module.job"), schedule(None, {**hourly(), **rarer})
    )
    assert [(f.rule, f.severity) for f in review.findings] == [("job-price-high", "high"), ("job-month-high", "high")]
    cost = as_json(review)["jobs"][0]["cost"]
    assert cost["runs_a_month"] == pytest.approx(30.44)
    for what in ("worst_case", "expected"):
        assert cost[f"{what}_month_usd"] == pytest.approx(cost[f"{what}_usd"] * 30.4375, rel=1e-4)
    page = markdown(review)
    assert "| runs a month, by its schedule | - | 30 |" in page
    assert "| worst case of a month | - | " in page


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("20", "5000", "high"), ("20", "60", "medium"), ("20", None, "high"), ("20", "25", None), (None, "20", None)],
)
def test_the_jobs_own_limit_of_the_price(before: str | None, after: str | None, expected: str | None) -> None:
    sides = job(max_price=before), job(max_price=after)
    review = reviewed(change(MACHINE, sides[0], sides[1], module_address="module.job"))
    assert [f.severity for f in review.findings if f.rule == "job-limit-raised"] == ([expected] if expected else [])
    told = [(word.field, word.before, word.after) for word in review.jobs[0].words]
    assert told == [("max_price", *(float(usd) if usd else None for usd in (before, after)))]


def test_fallbacks_that_go_are_found() -> None:
    fewer = job()
    fewer["definition"] = json.dumps(definition(name="no-such-job", types=("ml.m5.large",)))
    assert ("job-attempts-lost", "medium") in judged(job(), fewer)
    ends = job()
    machine = json.loads(ends["definition"])
    del machine["States"]["main: next"]
    ends["definition"] = json.dumps(machine)
    assert judged(job(), ends) == [("job-attempts-lost", "medium")]
    assert judged(ends, job()) == [("job-price-grown", "high")]


# --- machines that somebody wrote by hand -----------------------------------------------------------------------------

ROWS = [
    {"instance_type": "ml.g5.xlarge", "count": 1, "max_runtime": 3600, "spot": True, "isolation": True},
    {"instance_type": "ml.g5.2xlarge", "count": 1, "max_runtime": 3600, "spot": True, "isolation": True},
]


def theirs(*rows: dict[str, Any], retries: int = 2, **request: Any) -> dict[str, Any]:
    """A machine that carries its attempts as data."""
    states = {
        "Plan": {"Type": "Pass", "Result": {"attempts": list(rows or ROWS), "bucket": "s3://models/"}, "Next": "Train"},
        "Train": {
            "Type": "Map",
            "ItemsPath": "$.attempts",
            "ItemProcessor": {"StartAt": "One", "States": {"One": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sagemaker:createTrainingJob.sync",
                "Parameters": {
                    "TrainingJobName.$": "$$.Execution.Name",
                    "RoleArn": ROLE,
                    "AlgorithmSpecification": {"TrainingImage": f"{IMAGE}:3"},
                    "ResourceConfig": {"InstanceType.$": "$.instance_type", "InstanceCount.$": "$.count"},
                    "EnableManagedSpotTraining.$": "$.spot",
                    "OutputDataConfig": {"S3OutputPath.$": "States.Format('s3://models/{}', $$.Execution.Name)"},
                    **request,
                },
                "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": retries}],
                "End": True,
            }}},
            "End": True,
        },
    }  # fmt: skip
    machine = {"StartAt": "Plan", "States": states}
    return {"name": "theirs", "role_arn": ROLE, "definition": json.dumps(machine)}


def by_hand(before: Any, after: Any, *others: dict[str, Any], **fields: Any) -> list[tuple[str, str]]:
    return found(change("aws_sfn_state_machine.theirs", before, after, **fields), *others)


def test_a_definition_is_read_wherever_a_value_stands() -> None:
    read = asked(theirs()["definition"])
    assert read.requests == 1
    assert [(str(unit.instances), unit.seconds) for unit in read.units] == [
        ("1 x ml.g5.xlarge", 3600),
        ("1 x ml.g5.2xlarge", 3600),
    ]
    assert (read.images, read.outputs, read.roles) == ({f"{IMAGE}:3"}, {"models"}, {ROLE})
    assert (read.on["EnableManagedSpotTraining"], read.on["EnableNetworkIsolation"], read.retries) == (2, 2, 2)
    plain = {"Type": "Task", "Resource": "arn:aws:states:::sagemaker:createTrainingJob", "Parameters": {
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 4}}}  # fmt: skip
    (unit,) = asked({"States": {"T": plain}}).units
    assert (str(unit.instances), unit.seconds) == ("4 x ml.g5.xlarge", 86400), "the API's own limit of a day"
    assert asked({"States": {"C": {"Type": "Choice", "Choices": [{"StringEquals": "ml.g5.xlarge"}]}}}).units == []
    assert asked("no JSON").requests == 0


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (theirs(ROWS[0], ROWS[1] | {"instance_type": "ml.p4d.24xlarge"}), "job-price-grown"),
        (theirs(ROWS[0], ROWS[1] | {"count": 16}), "job-price-grown"),
        (theirs(ROWS[0], ROWS[1] | {"max_runtime": 86400}), "job-runtime-grown"),
        (theirs(ROWS[0], ROWS[1] | {"spot": False}), "job-spot-lost"),
        (theirs(ROWS[0] | {"isolation": False}, ROWS[1]), "job-isolation-off"),
        (theirs(*({k: v for k, v in row.items() if k != "isolation"} for row in ROWS)), "job-isolation-off"),
        (theirs(AlgorithmSpecification={"TrainingImage": "public.ecr.aws/x/train:3"}), "job-image-foreign"),
        (theirs(Environment={"PIP_INDEX_URL": "https://packages.example/simple"}), "job-environment"),
        (theirs(RoleArn=f"arn:aws:iam::{OWN}:role/admin"), "job-role-changed"),
        (theirs(OutputDataConfig={"S3OutputPath": "s3://elses/"}), "job-output-moved"),
        (theirs(InputDataConfig=[{"DataSource": {"S3DataSource": {"S3Uri": "s3://elses/in/"}}}]), "job-input-foreign"),
        (theirs(retries=50), "job-retries-grown"),
    ],
)
def test_anybodys_machine_is_judged_the_same(after: dict[str, Any], expected: str) -> None:
    assert expected in [rule for rule, _ in by_hand(theirs(), after)]
    assert by_hand(after, after, _after_unknown={"tags": True}) == []


def test_a_row_of_data_that_goes_takes_no_protection_with_it() -> None:
    assert by_hand(theirs(), theirs(ROWS[0])) == []
    assert by_hand(theirs(), theirs(*ROWS, ROWS[1])) == [("job-price-grown", "high")]


def test_a_definition_that_becomes_unknown_is_a_finding_where_it_trained() -> None:
    gone = {"name": "theirs", "role_arn": ROLE}
    assert by_hand(theirs(), gone, _after_unknown={"definition": True}) == [("job-unreadable", "high")]
    other = {"name": "theirs", "definition": '{"States": {"a": {"Type": "Pass"}}}'}
    assert by_hand(other, gone, _after_unknown={"definition": True}) == []


def test_a_new_machine_and_its_schedule_are_judged_too() -> None:
    dear = theirs(ROWS[0] | {"instance_type": "ml.p5.48xlarge", "count": 4, "max_runtime": 86400})
    assert by_hand(None, dear) == [("job-price-high", "medium")]
    rule = change("aws_cloudwatch_event_rule.r", None, {"name": "r", "schedule_expression": "rate(1 day)"})
    arn = f"arn:aws:states:eu-west-1:{OWN}:stateMachine:theirs"
    target = change("aws_cloudwatch_event_target.t", None, {"rule": "r", "arn": arn})
    assert ("job-month-high", "high") in by_hand(None, dear, rule, target)
    unchanged = change("aws_cloudwatch_event_rule.r", rule["change"]["after"], rule["change"]["after"], "no-op")
    assert ("job-schedule-more", "medium") in by_hand(theirs(), theirs(retries=3), rule, target)
    assert by_hand(theirs(), theirs(retries=3), unchanged, target) == []
    alone = change("aws_sfn_state_machine.theirs", theirs(), theirs(), "no-op")
    assert found(alone, rule, target) == [("job-schedule-more", "medium")]
    elsewhere = change("aws_cloudwatch_event_target.t", None, {"rule": "r", "arn": f"{arn}-2"})
    assert by_hand(theirs(), theirs(retries=3), rule, elsewhere) == []

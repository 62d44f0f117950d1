"""Instance groups in the job file: rules, render, fit, price, and the page a reviewer reads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from job_files import VALID, write_job
from review.plans import reviewed
from review.test_jobs import definition, machine
from sagefit.catalog import price
from sagefit.catalog.hardware import Instances, groups_of, hourly_price, in_words
from sagefit.errors import SagefitError
from sagefit.job import load_job
from sagefit.planning import JobPlan, attempt_usd, plan, worst_case_usd
from sagefit.planning.allowed import allowed_problems
from sagefit.reviewing import as_json, markdown
from sagefit.size import size_job

REGION = "us-east-1"
GROUPS = [
    {"name": "gpu", "instance_type": "ml.g5.xlarge"},
    {"name": "cpu", "instance_type": "ml.c5.4xlarge", "instance_count": 2},
]
GROUPED: dict[str, Any] = {key: value for key, value in VALID.items() if key != "attempts"} | {
    "image": {"framework": "pytorch", "version": "2.6"},
    "resources": {"instance_groups": GROUPS, "max_runtime": "1h"},
}


def write(folder: Path, changes: dict[str, Any] | None = None) -> str:
    return str(write_job(folder, changes, job=GROUPED))


@pytest.mark.parametrize(
    ("changes", "field", "rule", "knob"),
    [
        ({"resources.instance_type": "ml.m5.large"}, "resources.instance_type", "not both", "keep one"),
        ({"resources.instance_count": 2}, "resources.instance_count", "not both", "keep one"),
        ({"resources.instance_groups.1.name": "gpu"}, "resources.instance_groups[1].name", "earlier group", "rename"),
        ({"resources.instance_groups.1.name": ""}, "resources.instance_groups[1].name", "is empty", "fill it"),
        ({"resources.instance_groups.1.name": "x" * 65}, "resources.instance_groups[1].name", "64", "shorten"),
        (
            {"resources.instance_groups.0.instance_type": "ml.g5.xlarg"},
            "resources.instance_groups[0].instance_type",
            "no instance type",
            "did you mean ml.g5.xlarge?",
        ),
        (
            {"resources.instance_groups.0.instance_type": "auto"},
            "resources.instance_groups[0].instance_type",
            "does not know what each of them does",
            "name the type",
        ),
        (
            {"resources.instance_groups": [{"name": f"g{i}", "instance_type": "ml.m5.large"} for i in range(6)]},
            "resources.instance_groups",
            "5",
            "",
        ),
        (
            {"resources.instance_groups.1.instance_count": 20},
            "resources.instance_groups",
            "21 instances together; the quota of a training job is 20",
            "instance_quota",
        ),
        ({"resources.warm_pool": "10m"}, "resources.warm_pool", "no warm pool of instance groups", "remove one"),
        (
            {"attempts": [{"name": "a", "instance_type": "ml.m5.large"}]},
            "attempts[0].instance_type",
            "runs on those groups",
            "remove it",
        ),
        ({"attempts": [{"name": "a", "instance_count": 2}]}, "attempts[0].instance_count", "those groups", "remove it"),
        (
            {"attempts": [{"name": "a", "keep_alive_seconds": 60}]},
            "attempts[0].keep_alive_seconds",
            "no warm pool of instance groups",
            "remove it",
        ),
        ({"image.version": "1.9"}, "image.version", "1.10 is the first", "newer"),
        (
            {"inputs.train": {"uri": "data", "instance_groups": ["tpu"]}},
            "inputs.train.instance_groups",
            "no group of resources.instance_groups is named 'tpu'",
            "use gpu, cpu",
        ),
        (
            {"inputs.train": {"uri": "data", "instance_groups": ["cpu", "cpu"]}},
            "inputs.train.instance_groups",
            "names a group twice",
            "once",
        ),
        (
            {
                "resources": {"instance_type": "ml.m5.large"},
                "inputs.train": {"uri": "data", "instance_groups": ["cpu"]},
            },
            "inputs.train.instance_groups",
            "no group of resources.instance_groups is named 'cpu'",
            "add the groups",
        ),
        (
            {
                "inputs.train": {
                    "file_system": {"id": "fs-01234567", "type": "EFS", "directory_path": "/d"},
                    "instance_groups": ["cpu"],
                }
            },
            "inputs.train.instance_groups",
            "only data in S3",
            "remove it",
        ),
        (
            {
                "inputs.images": {"uri": "data", "instance_groups": ["cpu"]},
                "inputs.train": {"file_system": {"id": "fs-01234567", "type": "EFS", "directory_path": "/d"}},
            },
            "inputs.train.file_system",
            "images names instance groups, and SageMaker takes names for all inputs or for none",
            "bring the data from S3",
        ),
    ],
)
def test_every_refusal_names_field_rule_and_knob(
    tmp_path: Path, changes: dict[str, Any], field: str, rule: str, knob: str
) -> None:
    with pytest.raises(SagefitError) as caught:
        load_job(write(tmp_path, changes))
    found = re.split(r"\n(?=\S)", caught.value.message)
    assert any(f": {field}: " in each and rule in each and knob in each for each in found), caught.value.message


def test_groups_are_one_attempt_that_costs_the_sum(tmp_path: Path) -> None:
    job = load_job(write(tmp_path))
    (attempt,) = plan(job).attempts
    assert (attempt.name, attempt.hardware) == ("main", "1 x ml.g5.xlarge + 2 x ml.c5.4xlarge")
    gpu, cpu = price("ml.g5.xlarge", REGION), price("ml.c5.4xlarge", REGION)
    assert gpu
    assert cpu
    hours = 1 + 1 / 30  # the limit and the stop
    assert attempt_usd(attempt, REGION) == pytest.approx(hours * (gpu.usd_per_hour + 2 * cpu.usd_per_hour))
    assert worst_case_usd([attempt], REGION) == attempt_usd(attempt, REGION)
    (problem,) = allowed_problems(plan(job), ["ml.g5.xlarge"])
    assert problem.field == ("resources", "instance_groups")
    assert "attempt main runs on ml.c5.4xlarge, and the platform" in problem.message


def test_written_attempts_run_on_the_groups_and_differ_in_the_rest(tmp_path: Path) -> None:
    written = [
        {"name": "first", "next": {"gpu_memory": "smaller"}},
        {"name": "smaller", "hyperparameters": {"batch_size": 1}, "volume_size_gb": 60},
    ]
    attempts = plan(load_job(write(tmp_path, {"attempts": written}))).attempts
    assert [attempt.hardware for attempt in attempts] == ["1 x ml.g5.xlarge + 2 x ml.c5.4xlarge"] * 2
    assert [attempt.volume_size_gb for attempt in attempts] == [30, 60]


def test_the_render_holds_the_groups_and_no_type(tmp_path: Path) -> None:
    text = plan(load_job(write(tmp_path, {"inputs.train": {"uri": "data", "instance_groups": ["cpu"]}}))).text
    assert "# 0: ml.g5.xlarge + 2 x ml.c5.4xlarge, at most 1 h." in text
    assert 'instance_groups = ["cpu"]' in " ".join(text.split())
    attempt = text.split("attempts = [")[1]
    assert "instance_groups" in attempt
    assert attempt.count("instance_type") == 2


def test_the_fit_is_that_of_the_group_that_holds_it_worst(tmp_path: Path) -> None:
    memory = {"model": {"family": "measured", "gpu_gib": 10, "host_gib": 12}}
    sized = size_job(
        plan(load_job(write(tmp_path, {"memory": memory, "resources.instance_groups": GROUPS[:1]}))), REGION
    )
    assert sized.shown
    assert (sized.verdict, sized.shown.instance_type) == ("FITS", "ml.g5.xlarge")
    small = [*GROUPS[:1], {"name": "small", "instance_type": "ml.g4dn.xlarge", "instance_count": 1}]
    memory["model"]["gpu_gib"] = 15
    sized = size_job(JobPlan(load_job(write(tmp_path, {"memory": memory, "resources.instance_groups": small}))), REGION)
    assert sized.shown
    assert (sized.verdict, sized.shown.instance_type) == ("OOM", "ml.g4dn.xlarge")


def test_a_reviewer_sees_the_groups_their_channels_and_their_price() -> None:
    after = definition(types=("ml.g5.xlarge",))
    request = after["States"]["main: submit"]["Parameters"]
    request["ResourceConfig"] = {
        "VolumeSizeInGB": 30,
        "InstanceGroups": [
            {"InstanceGroupName": "gpu", "InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
            {"InstanceGroupName": "cpu", "InstanceType": "ml.c5.4xlarge", "InstanceCount": 2},
        ],
    }
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://data/x/", "InstanceGroupNames": ["cpu"]}
    request["InputDataConfig"] = [{"ChannelName": "images", "DataSource": {"S3DataSource": source}}]
    review = reviewed(machine(definition(types=("ml.g5.xlarge",)), after))
    page = markdown(review)
    assert "1 x ml.g5.xlarge + 2 x ml.c5.4xlarge" in page
    assert "+ attempts.main.instance_groups.cpu: 2 x ml.c5.4xlarge" in page
    assert "- attempts.main.instance_type: ml.g5.xlarge" in page
    assert "inputs.images.instance_groups" in page
    (job,) = json.loads(json.dumps(as_json(review)))["jobs"]
    gpu, cpu = price("ml.g5.xlarge", REGION, packaged=True), price("ml.c5.4xlarge", REGION, packaged=True)
    assert gpu
    assert cpu
    worst = job["after"]["cost"]["worst_case_usd"] if "after" in job else job["cost"]["worst_case_usd"]
    assert worst == pytest.approx((1 + 1 / 30) * (gpu.usd_per_hour + 2 * cpu.usd_per_hour), abs=1e-3)


def test_a_request_of_groups_is_read_and_priced_whole() -> None:
    resources = {
        "InstanceGroups": [
            {"InstanceGroupName": "gpu", "InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
            {"InstanceGroupName": "cpu", "InstanceType": "ml.c5.4xlarge", "InstanceCount": 2},
        ]
    }
    groups = groups_of(resources)
    assert in_words(groups) == "1 x ml.g5.xlarge + 2 x ml.c5.4xlarge"
    assert groups_of({"InstanceType": "ml.m5.large", "InstanceCount": 1}) == ()
    parts = [price(each.instance_type, REGION) for each in groups]
    whole = hourly_price(groups, REGION)
    assert whole
    assert whole.usd_per_hour == pytest.approx(
        sum(p.usd_per_hour * g.instance_count for p, g in zip(parts, groups, strict=True) if p)
    )
    assert hourly_price([*groups, Instances("x", "ml.none.large", 1)], REGION) is None
    assert hourly_price([], REGION) is None

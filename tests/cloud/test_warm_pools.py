"""Warm pools: a job that finds kept instances does not wait for new ones, and finds what the last one left for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud.aws_user import Aws
from sagefit.cloud import control, images
from sagefit.errors import SagefitError

pytestmark = pytest.mark.xdist_group("cloud-with-slow-instances")  # one cloud of that kind is enough

START_SECONDS = 2.0
POOLED = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10, "KeepAlivePeriodInSeconds": 600}
CACHE = """
import os, pathlib, sys
cache = pathlib.Path(os.environ["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"])
print("found", sorted(path.name for path in cache.iterdir()), "in", sys.prefix)
(cache / os.environ["TRAINING_JOB_NAME"]).touch()
"""


@pytest.fixture(scope="module")
def cloud_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slow")


@pytest.fixture(scope="module")
def slow_aws(cloud_home: Path) -> Iterator[Aws]:
    """A cloud of its own, whose instances take a while to come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SAGEFIT_HOME", str(cloud_home))
        control.up(start_seconds=START_SECONDS)
        aws = Aws(control.environment())
        aws.prepare()
        yield aws
        aws.close()
        control.down()


def seconds_pending(job: dict[str, Any]) -> float:
    """How long it waited for instances."""
    step = next(step for step in job["SecondaryStatusTransitions"] if step["Status"] == "Pending")
    return float((step["EndTime"] - step["StartTime"]).total_seconds())


def test_a_job_of_the_pools_shape_starts_faster_and_finds_the_cache(slow_aws: Aws) -> None:
    jobs = [slow_aws.run(CACHE, ResourceConfig=POOLED) for _ in range(3)]
    names = [job["TrainingJobName"] for job in jobs]
    assert [job["TrainingJobStatus"] for job in jobs] == ["Completed"] * 3, jobs[0].get("FailureReason")
    assert [seconds_pending(job) >= START_SECONDS for job in jobs] == [True, False, False]
    pools = [slow_aws.describe(name)["WarmPoolStatus"] for name in names]
    assert [(pool["Status"], pool.get("ReusedByJob")) for pool in pools] == [
        ("Reused", names[1]),
        ("Reused", names[2]),
        ("Available", None),
    ]
    found = [slow_aws.lines(name)[0].split(" in ") for name in names]
    assert [what for what, _ in found] == [f"found {sorted(names[:number])}" for number in range(3)]
    assert len({where for _, where in found}) == 1  # the environment of the first
    slow_aws.client("sagemaker").update_training_job(
        TrainingJobName=names[2], ResourceConfig={"KeepAlivePeriodInSeconds": 0}
    )


def test_a_job_that_differs_in_any_key_starts_cold(slow_aws: Aws) -> None:
    first = slow_aws.run(CACHE, ResourceConfig=POOLED)["TrainingJobName"]
    changes: list[dict[str, Any]] = [
        {"ResourceConfig": POOLED | {"VolumeSizeInGB": 11}},
        {"ResourceConfig": POOLED | {"InstanceCount": 2}},
        {"EnableNetworkIsolation": True},
        {"EnableInterContainerTrafficEncryption": True},
        {"VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}},
    ]
    names = [slow_aws.start(CACHE, **{"ResourceConfig": POOLED} | change) for change in changes]
    for name in names:
        assert seconds_pending(slow_aws.wait(name)) >= START_SECONDS
        assert slow_aws.lines(name)[0].startswith("found [] in")
    assert slow_aws.describe(first)["WarmPoolStatus"]["Status"] == "Available"


def test_an_environment_that_was_written_to_is_not_kept(tmp_path: Path) -> None:
    layer = images.layer(tmp_path, tmp_path / "layer")
    assert images.is_pristine(layer)
    (next(layer.glob("lib/*/site-packages")) / "own.py").touch()
    assert not images.is_pristine(layer)


def test_the_cloud_tells_how_long_instances_take(slow_aws: Aws) -> None:
    assert slow_aws.endpoint
    now = control.status()
    assert now
    assert now.start_seconds == START_SECONDS
    with pytest.raises(SagefitError, match=r"already runs with --start-seconds 2\.0, not 1"):
        control.up(start_seconds=1)

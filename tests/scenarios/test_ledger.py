"""What is told of attempts whose FailureReason says nothing: by logs, by metrics, by what the flight recorder left."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from datetime import datetime, timezone
from typing import Any

import pytest

from sagefit.failures import REMEDIES
from scenarios.conftest import EXPLAINED, SCENARIOS, THROTTLED, UNEXPLAINED, Cloud, run_name

pytestmark = pytest.mark.xdist_group("scenarios")

LOST_PEER = "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0."
NO_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 21.98 GiB"
)
GROUP = "/aws/sagemaker/TrainingJobs"
SAYS = "AlgorithmError: , exit code: 1"
ASKED = {"GetLogEvents", "DescribeLogStreams", "GetMetricData", "GetObject", "ListObjectsV2"}
NUMBERS = {"log": 0, "metrics": 1, "few metrics": 2, "recorder": 3, "nothing": 4}


def run_of(case: str) -> str:
    return f"bare-{UNEXPLAINED}-{NUMBERS[case]:06d}"


@pytest.fixture(scope="module")
def unexplained(cloud: Cloud) -> Cloud:
    """The cloud with runs whose only training job failed with exit code 1, and traces of why in various places."""
    for case in NUMBERS:
        cloud.start("bare", run_of(case))
    for case in NUMBERS:
        assert cloud.ended("bare", run_of(case))["error"] == "Sagefit.code"
    say(cloud, run_of("log"), "algo-1", 1, "out of date: CUDA out of memory is what the first launch never saw")
    say(cloud, run_of("log"), "algo-1", 2, "Traceback (most recent call last):", LOST_PEER)
    say(cloud, run_of("log"), "algo-2", 2, "step 10", "Traceback (most recent call last):", NO_MEMORY)
    measure(cloud, run_of("metrics"), MemoryUtilization=97.5, DiskUtilization=40.0)
    measure(cloud, run_of("few metrics"), MemoryUtilization=70.0)
    report = {"schema": 1, "host": "algo-1", "disks": [{"path": "/opt/ml", "peak_bytes": 99, "total_bytes": 100}]}
    output = cloud.client("sagemaker").describe_training_job(TrainingJobName=f"{run_of('recorder')}-0")
    bucket, _, prefix = output["OutputDataConfig"]["S3OutputPath"].removeprefix("s3://").partition("/")
    key = f"{prefix}/{run_of('recorder')}-0/output/data/sagefit.json"
    cloud.client("s3").put_object(Bucket=bucket, Key=key, Body=json.dumps(report))
    return cloud


def say(cloud: Cloud, run: str, host: str, launch: int, *lines: str) -> None:
    """Put lines into the log of a host."""
    logs, stream = cloud.client("logs"), f"{run}-0/{host}-170000000{launch}"
    with contextlib.suppress(logs.exceptions.ResourceAlreadyExistsException):
        logs.create_log_group(logGroupName=GROUP)
    logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
    now = int(time.time() * 1000)
    logs.put_log_events(
        logGroupName=GROUP, logStreamName=stream, logEvents=[{"timestamp": now, "message": line} for line in lines]
    )


def measure(cloud: Cloud, run: str, **metrics: float) -> None:
    """Put metrics of a host."""
    data = [
        {
            "MetricName": name,
            "Value": value,
            "Timestamp": datetime.now(timezone.utc),
            "Dimensions": [{"Name": "Host", "Value": f"{run}-0/algo-1"}],
        }
        for name, value in metrics.items()
    ]
    cloud.client("cloudwatch").put_metric_data(Namespace=GROUP, MetricData=data)


def last(cloud: Cloud, case: str) -> dict[str, Any]:
    """The last attempt of a run in the ledger."""
    attempt: dict[str, Any] = json.loads(cloud.sagefit("runs", run_of(case), "--json").out)["attempts"][-1]
    return attempt


@pytest.mark.parametrize(
    ("case", "failure", "evidence"),
    [
        ("metrics", "host_memory", f"{SAYS}; host memory 98 % full"),
        ("few metrics", "code", SAYS),
        ("recorder", "disk", f"{SAYS}; disk 99 % full"),
        ("nothing", "code", SAYS),
    ],
)
def test_utilisation_explains_what_no_text_does(unexplained: Cloud, case: str, failure: str, evidence: str) -> None:
    found = last(unexplained, case)
    assert (found["outcome"], found["evidence"], found["failure_reason"]) == (failure, evidence, SAYS)
    assert found["routed_by"] == ("" if failure == "code" else "code")
    assert found["next_step"] == REMEDIES[failure][0]


def test_the_log_of_every_host_counts(unexplained: Cloud) -> None:
    """The first host has only lost its peer; its earlier launch is history."""
    told = unexplained.sagefit("diagnose", run_of("log")).out.splitlines()
    assert told[0] == "gpu_memory"
    assert told[1] == f"evidence: {NO_MEMORY}"
    assert told[2] == "confidence: B, seen in public reports"
    assert told[3] == "algo-2, line 3:"
    assert told[4:7] == ["  1 | step 10", "  2 | Traceback (most recent call last):", f"> 3 | {NO_MEMORY}"]
    assert told[7] == "reached: step 10"
    assert told[8] == "the run took it for code, by the failure reason alone"
    assert f"try: {REMEDIES['gpu_memory'][0]}" in told[9:]


def test_the_ledger_says_what_the_run_took_it_for(unexplained: Cloud) -> None:
    said = unexplained.sagefit("runs", run_of("log")).out
    assert f"gpu_memory: {NO_MEMORY}" in said
    assert f"the run took it for code, by the reason alone: {SAYS}" in said
    assert f"next: {REMEDIES['gpu_memory'][0]}" in said
    assert f"failed: Sagefit.code, which was gpu_memory: {NO_MEMORY}" in said


def test_the_end_of_a_watch_says_the_same(unexplained: Cloud) -> None:
    done = unexplained.sagefit("watch", run_of("log"), check=1)
    assert f"attempt 0 first on ml.m5.large: gpu_memory: {NO_MEMORY}" in done.err
    assert "the run took it for code" in done.out


def test_what_decides_is_not_looked_into(unexplained: Cloud) -> None:
    """Logs, metrics and reports are asked for where they can tell more, and only so often."""
    decided = f"bare-{EXPLAINED}-000000"
    unexplained.start("bare", decided)
    assert unexplained.ended("bare", decided)["error"] == "Sagefit.gpu_memory"
    before = Counter(call["action"] for call in unexplained.sagefit.calls())
    unexplained.sagefit("runs", run_of("log"))
    between = Counter(call["action"] for call in unexplained.sagefit.calls())
    unexplained.sagefit("runs", decided)
    after = Counter(call["action"] for call in unexplained.sagefit.calls())
    assert {action: count for action, count in (between - before).items() if action in ASKED} == {
        "DescribeLogStreams": 1,
        "GetLogEvents": 2,
        "GetMetricData": 1,
        "GetObject": 1,
        "ListObjectsV2": 1,
    }
    assert not ASKED & (after - between).keys()


def test_a_job_that_found_no_instances_is_told_as_the_run_took_it(runs: Cloud) -> None:
    index = next(
        i for i, each in enumerate(SCENARIOS) if each["why"] == "no instances within max_pending, with an edge"
    )
    runs.ended("bare", run_name(index))
    first, second = json.loads(runs.sagefit("runs", run_name(index), "--json").out)["attempts"]
    assert (first["outcome"], first["evidence"], first["routed_by"]) == ("capacity", "MaxPendingTimeExceeded", "")
    assert second["outcome"] == "completed"


@pytest.mark.full(witness="tests/scenarios/test_ledger.py::test_utilisation_explains_what_no_text_does")
def test_throttling_that_outlasts_the_run_is_told_as_such(cloud: Cloud) -> None:
    """Class internal, by the rows for throttling of the table; but nothing is wrong with AWS, and it says so."""
    name = f"bare-{THROTTLED}-000000"
    cloud.start("bare", name)
    assert cloud.ended("bare", name)["error"] == "Sagefit.internal"
    (attempt,) = json.loads(cloud.sagefit("runs", name, "--json").out)["attempts"]
    assert (attempt["outcome"], attempt["training_job"]) == ("internal", "")
    assert (attempt["instance_type"], attempt["instance_count"], attempt["spot"]) == ("ml.m5.large", 1, False)
    assert attempt["diagnosis"]["pattern"] == "*Rate exceeded*"
    assert attempt["evidence"].startswith("SageMaker.SageMakerException: Rate exceeded")
    assert attempt["next_step"].startswith("start fewer runs at the same time")
    assert "there never was a training job" in cloud.sagefit("runs", name).out
    told = cloud.sagefit("diagnose", name).out
    assert "try: ask Service Quotas for a higher rate of CreateTrainingJob requests" in told

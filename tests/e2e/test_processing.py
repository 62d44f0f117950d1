"""Runs that are in a processing step: one that fails there, and one that is stopped there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import NEWEST, World
from job_files import write_job

pytestmark = pytest.mark.xdist_group("e2e")

BUCKET = "sagefit-dev-123456789012-us-east-1-data"
SCRIPT = """
import pathlib, sys, time
given, message = map(pathlib.Path, sys.argv[1:])
time.sleep(float((given / "seconds").read_text()))
message.parent.mkdir(exist_ok=True)
message.write_text("no column 'label' in the third file")
print("Traceback (most recent call last):\\nValueError: no column 'label'")
sys.exit(1)
"""
STEP = {
    "name": "prepare",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {
        "source_dir": "src",
        "entry_point": "prepare.py",
        "arguments": ["/opt/ml/processing/input/given", "/opt/ml/output/message"],
    },
    "inputs": {"given": f"s3://{BUCKET}/prepare/"},
    "outputs": ["rows"],
    "resources": {"instance_type": "ml.m5.large", "max_runtime": "10m"},
}


@pytest.fixture(scope="module")
def job(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An applied job with one step, which takes as long as the data says and then fails."""
    changes: dict[str, Any] = {
        "name": "prepared",
        "processing": [STEP],
        "inputs": {"train": {"from": "prepare/rows"}},
        "resources": {"max_runtime": "5m", "poll_interval": "1s"},
    }
    path = write_job(tmp_path_factory.mktemp("prepared"), changes, file="prepared.yaml")
    (path.parent / "src" / "prepare.py").write_text(SCRIPT, encoding="utf-8")
    world.apply(path)
    return path


def take(world: World, seconds: int) -> None:
    world.client("s3").put_object(Bucket=BUCKET, Key="prepare/seconds", Body=str(seconds).encode())


def status(world: World, run: str) -> str:
    listed = world.client("sagemaker").list_processing_jobs(NameContains=f"{run}-p0", **NEWEST)
    found = listed["ProcessingJobSummaries"]
    return str(found[0]["ProcessingJobStatus"]) if found else ""


def wait_for(world: World, run: str, *wanted: str) -> None:
    deadline = time.monotonic() + 60
    while (now := status(world, run)) not in wanted:
        assert time.monotonic() < deadline, now
        time.sleep(0.1)


def test_a_step_that_fails_ends_the_run_and_is_explained(world: World, job: Path) -> None:
    take(world, 0)
    run = world.sagefit("start", job).out.strip()
    said = world.sagefit("watch", run, "--logs", check=1)
    assert "processing prepare on ml.m5.large: code" in said.err
    assert "prepare | ValueError: no column 'label'" in said.err

    record = json.loads(world.sagefit("runs", run, "--json").out)
    assert record["status"] == "FAILED"
    assert record["error"] == "Sagefit.code"
    assert record["attempts"] == []
    (step,) = record["steps"]
    assert (step["name"], step["processing_job"], step["outcome"]) == ("prepare", f"{run}-p0", "code")
    assert "no column 'label'" in step["evidence"]
    execution = world.client("stepfunctions").describe_execution(
        executionArn=f"arn:aws:states:us-east-1:123456789012:execution:sagefit-dev-prepared:{run}"
    )
    noted = json.loads(execution["cause"])["p0"]
    assert noted["attempt"] == "processing prepare"
    assert noted["evidence"] == "AlgorithmError: , exit code: 1: no column 'label' in the third file"
    diagnosed = world.sagefit("diagnose", run)
    assert "processing prepare:" in diagnosed.err
    assert "evidence: ValueError: no column 'label'" in diagnosed.out or "third file" in diagnosed.out


def test_stop_ends_the_step_that_runs(world: World, job: Path) -> None:
    take(world, 600)
    run = world.sagefit("start", job).out.strip()
    with world.stopping(run):
        wait_for(world, run, "InProgress")
        stopped = world.sagefit("stop", run)
        assert f"{run}-p0 is stopping" in stopped.err
        wait_for(world, run, "Stopped")
        record = json.loads(world.sagefit("runs", run, "--json").out)
        assert record["status"] == "ABORTED"
        assert [step["outcome"] for step in record["steps"]] == ["stopped"]

"""Attempts that are tuning jobs: trials that are really killed, a search that goes on with the next attempt, a stop."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import NEWEST, World
from job_files import write_job

pytestmark = pytest.mark.xdist_group("e2e")

SCRIPT = """
import argparse, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--hoard", type=int)
parser.add_argument("--depth", type=int)
parser.add_argument("--colour")
parser.add_argument("--pause", type=float, default=0)
given = parser.parse_args()
held = [bytearray(b"x" * 2**24) for _ in range(given.hoard)]
time.sleep(given.pause)
print(f"score={given.depth + (10 if given.colour == 'blue' else 0)}")
open(os.environ["SM_MODEL_DIR"] + "/score", "w").write("x")
"""
JOB: dict[str, Any] = {
    "name": "searches",
    "metrics": [{"name": "score", "regex": "score=([0-9.]+)"}],
    "hyperparameters": {"hoard": 100},
    "resources": {"instance_type": "ml.m5.large", "max_runtime": "5m", "poll_interval": "1s"},
    "tuning": {
        "strategy": "Grid",
        "objective": {"metric": "score", "type": "Maximize"},
        "max_parallel_jobs": 2,
        "ranges": {"depth": [1, 2], "colour": ["green", "blue"]},
    },
    "attempts": [
        {"name": "all-in-memory", "next": {"host_memory": "a-little"}},
        {"name": "a-little", "hyperparameters": {"hoard": 1}},
    ],
}


@pytest.fixture(scope="module")
def searches(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the applied job."""
    job = write_job(tmp_path_factory.mktemp("searches"), JOB)
    (job.parent / "src" / "train.py").write_text(SCRIPT, encoding="utf-8")
    world.apply(job)
    return job


def test_trials_that_die_of_memory_move_the_run_to_the_next_search(world: World, searches: Path) -> None:
    done = world.sagefit("run", searches, "--yes")
    first, second = json.loads(world.sagefit("runs", searches, "--json").out)["attempts"]
    assert (first["outcome"], first["routed_by"], first["search"]["failed"]) == ("host_memory", "", 4)
    assert "signal 9" in first["evidence"]
    assert (second["outcome"], second["search"]["completed"]) == ("completed", 4)
    assert second["search"]["hyperparameters"] == {"colour": "blue", "depth": "2"}
    assert second["metrics"] == {"score": 12.0}
    assert first["host_peak_gib"] > second["host_peak_gib"]
    assert first["billable_seconds"] >= 4
    assert "best hyperparameters: colour=blue, depth=2" in done.out
    assert re.search(r"model: s3://\S+-1-\d{3}-[0-9a-f]{8}/output/model\.tar\.gz", done.out)
    assert "trials completed" in done.err
    [output] = [
        execution
        for machine in world.client("stepfunctions").list_state_machines()["stateMachines"]
        if machine["name"].endswith("-searches")
        for execution in world.client("stepfunctions").list_executions(stateMachineArn=machine["stateMachineArn"])[
            "executions"
        ]
    ]
    told = json.loads(world.client("stepfunctions").describe_execution(executionArn=output["executionArn"])["output"])
    assert told["hyperparameters"] == {"colour": "blue", "depth": "2"}
    assert told["objective"] == {"Type": "Maximize", "MetricName": "score", "Value": 12.0}
    assert told["attempts"]["0"]["class"] == "host_memory"


@pytest.mark.full(witness="tests/e2e/test_processing.py::test_stop_ends_the_step_that_runs")
def test_a_stop_ends_the_search_and_its_trials(world: World, tmp_path: Path) -> None:
    changes = {"name": "endless", "attempts": [{"name": "only"}], "hyperparameters": {"hoard": 1, "pause": 60}}
    job = write_job(tmp_path, JOB | changes)
    (job.parent / "src" / "train.py").write_text(SCRIPT, encoding="utf-8")
    world.apply(job)
    run = world.sagefit("start", job).out.strip()
    with world.stopping(run):
        sagemaker, deadline = world.client("sagemaker"), time.monotonic() + 60
        while not sagemaker.list_training_jobs(NameContains=f"{run}-", **NEWEST)["TrainingJobSummaries"]:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert f"{run}-0 is stopping" in world.sagefit("stop", run).err
        while (status := sagemaker.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName=f"{run}-0"))[
            "HyperParameterTuningJobStatus"
        ] == "Stopping":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert status["HyperParameterTuningJobStatus"] == "Stopped"
        assert status["TrainingJobStatusCounters"]["InProgress"] == 0

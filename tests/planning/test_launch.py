"""Where a plan counts more processes or hosts than the job file and the launcher make of it, somebody looks again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from job_files import AUTO, write_job
from sagefit.job import load_job
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.remarks import plan_remarks

SHARDED = {"memory.model": "Qwen/Qwen2.5-1.5B", "memory.sharding": "zero3", "memory.precision": "bf16-mixed"}


def said(tmp_path: Path, changes: dict[str, Any]) -> list[str]:
    job = load_job(str(write_job(tmp_path, changes, job=AUTO)))
    return job.told(plan_remarks(JobPlan(job)))


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, True),
        ({"environment": {"SAGEFIT_TORCHRUN": "true"}}, False),
        ({"environment": {"SAGEFIT_TORCHRUN": "false"}}, False),
        ({"hyperparameters.sagemaker_torch_distributed_enabled": True}, False),
        ({"memory.world_size": 1}, False),
        ({"resources.instance_type": "ml.g6e.xlarge"}, False),
        ({"resources.instance_count": 2}, False),
    ],
)
def test_processes_that_nobody_starts_are_named(tmp_path: Path, changes: dict[str, Any], counted: bool) -> None:
    found = said(tmp_path, {**SHARDED, "resources.instance_type": "ml.g6e.12xlarge", **changes})
    assert any("has 4 GPUs on one host" in each for each in found) == counted
    if counted:
        (told,) = found
        assert "the prediction counts 4 processes" in told
        assert 'add SAGEFIT_TORCHRUN: "true"' in told


def test_written_attempts_are_looked_at_too(tmp_path: Path) -> None:
    attempts = [{"name": "only", "instance_type": "ml.g6e.12xlarge"}]
    (told,) = said(tmp_path, {**SHARDED, "attempts": attempts, "resources.instance_type": None})
    assert "attempt only has 4 GPUs on one host" in told


def test_a_shell_script_starts_what_it_wants(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "run.sh").write_text("torchrun train.py\n", encoding="utf-8")
    changes = {**SHARDED, "resources.instance_type": "ml.g6e.12xlarge", "code.entry_point": "run.sh"}
    assert said(tmp_path, changes) == []


LARGE = {
    **SHARDED,
    "memory.model": "meta-llama/Llama-3.1-8B",
    "hyperparameters.gradient_checkpointing": True,
    "hyperparameters.per_device_train_batch_size": 2,
    "memory.attention": "flash",
    "environment": {"SAGEFIT_TORCHRUN": "true"},
}


def test_more_hosts_than_the_file_writes_are_named(tmp_path: Path) -> None:
    (told,) = said(tmp_path, {**LARGE, "resources.instance_count": 1})
    assert "resources.instance_count: the planner takes 1 or more hosts of a sharded model" in told
    assert said(tmp_path, LARGE) == []

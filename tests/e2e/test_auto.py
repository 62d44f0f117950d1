"""A job whose attempts Sagefit makes: sized, planned, run out of memory, and finished by the attempt it foresaw."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from e2e.conftest import World
from sagefit.errors import DOES_NOT_FIT
from sagefit.paths import ROOT

pytestmark = pytest.mark.xdist_group("e2e")

EXAMPLE = ROOT / "examples" / "quickstart"
JOB = {
    "platform": "dev",
    "code": {"source_dir": "quickstart", "entry_point": "train.py", "exclude": ["data/**"]},
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "inputs": {name: f"quickstart/data/{name}" for name in ("train", "test")},
    "hyperparameters": {"epochs": 2, "cache": True},
    "resources": {
        "instance_type": ["ml.m5.large", "ml.m5.xlarge", "ml.r5.large"],
        "max_runtime": "10m",
        "poll_interval": "1s",
    },
    # Too little, as a measurement on other data would be: the first attempt dies of it.
    "memory": {"model": {"family": "measured", "host_gib": 5.5}},
}


def test_a_run_moves_to_the_attempt_that_was_made_for_its_failure(world: World, tmp_path: Path) -> None:
    job = tmp_path / "measured.yaml"
    shutil.copytree(EXAMPLE, tmp_path / "quickstart")
    job.write_text(yaml.safe_dump(JOB), encoding="utf-8")
    sized = json.loads(world.sagefit("size", "--json", job).out)
    assert sized["chosen"] == "ml.m5.large"
    first = sized["attempts"][0]
    with world.destroying(job):
        world.sagefit("run", job, "--yes", program=(ROOT / "tests" / "counted.py", counts := tmp_path / "counts.json"))
        record = json.loads(world.sagefit("runs", job, "--json").out.splitlines()[0])
        # A job that fits nowhere any more can still be destroyed.
        job.write_text(yaml.safe_dump(JOB | {"memory": {"model": {"family": "measured", "host_gib": 500}}}), "utf-8")
        assert "is sure to hold it" in world.sagefit("plan", job, check=DOES_NOT_FIT).err
    assert record["status"] == "SUCCEEDED"
    assert [attempt["outcome"] for attempt in record["attempts"]] == ["host_memory", "completed"]
    assert [attempt["name"] for attempt in record["attempts"]] == ["main", first["next"]["host_memory"]]
    assert record["attempts"][1]["instance_type"] == "ml.r5.large"
    once = dict.fromkeys(("attempts", "candidates", "edges", "memory block", "text"), 1)
    assert json.loads(counts.read_text(encoding="utf-8")) == once, "a job is planned once in a run"

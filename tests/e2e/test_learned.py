"""What a run measured is fetched, kept beside the job file, and used. The job is the quickstart by another name."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.conftest import World
from sagefit.job import load_job
from sagefit.memory.code_digest import code_digest
from sagefit.paths import ROOT

pytestmark = [
    pytest.mark.xdist_group("e2e"),
    pytest.mark.full(witness="tests/planning/test_learning.py"),
]

EXAMPLE = ROOT / "examples" / "quickstart"


@pytest.fixture(scope="module")
def digits(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A job file, and what its first run printed."""
    job = yaml.safe_load((ROOT / "jobs" / "quickstart.yaml").read_text(encoding="utf-8"))
    job["code"] |= {"source_dir": "quickstart"}
    job["inputs"] = {name: f"quickstart/data/{name}" for name in ("train", "test")}
    file = tmp_path_factory.mktemp("learned") / "digits.yaml"
    shutil.copytree(EXAMPLE, file.with_name("quickstart"))
    file.write_text(yaml.safe_dump(job | {"name": "learned"}), encoding="utf-8")
    with world.destroying(file):
        done = world.sagefit("run", file, "--yes")
        assert f"--cloud local size {file} --runs" in done.err
        yield file, done.out


def sized(world: World, file: Path, *options: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(world.sagefit("size", "--json", *options, file).out)
    return answer


def test_a_measured_peak_is_learned_and_used(world: World, digits: tuple[Path, str]) -> None:
    file, _ = digits
    peaks = file.with_name("digits.peaks.json")
    assert sized(world, file)["measured"] == []
    assert not peaks.exists()
    done = world.sagefit("size", "--runs", file)
    assert "peaks.json written: 2 measured attempts. Commit it with the job" in done.err
    answer = sized(world, file)
    first, second = answer["measured"]
    assert (first["outcome"], second["outcome"]) == ("host_memory", "completed")
    (record,) = [json.loads(line) for line in world.sagefit("runs", file, "--json").out.splitlines()]
    ledger = [attempt["host_peak_gib"] for attempt in record["attempts"]]
    assert [first["host_gib"], second["host_gib"]] == pytest.approx(ledger, abs=0.02)
    kept = json.loads(peaks.read_text(encoding="utf-8"))["peaks"]
    assert {peak["code"] for peak in kept} == {code_digest(load_job(str(file)))}  # as Terraform computed it
    streaming = next(attempt for attempt in answer["attempts"] if attempt["name"] == "streaming")
    assert streaming["host_gib"]["point"] == pytest.approx(second["host_gib"], abs=1e-6)
    assert answer["saving"]["attempt"] == "streaming"
    assert "cheaper: streaming uses at most" in done.out
    assert "up to date" in world.sagefit("size", "--runs", file).err
    planned = world.sagefit("plan", file).out
    assert "0 to add, 1 to change, 0 to destroy" in planned  # the predicted share of memory is a tag of each attempt
    assert "memory_percent" in world.sagefit("render", "--stdout", file).out


def test_the_ledger_tells_the_story_of_each_attempt(digits: tuple[Path, str]) -> None:
    _, out = digits
    assert re.search(r"^0 in-memory: the first attempt$", out, re.MULTILINE)
    assert re.search(r"^  host_memory: .*signal 9", out, re.MULTILINE)
    assert re.search(r"^  next: on to streaming$", out, re.MULTILINE)
    assert re.search(r"^1 streaming: host_memory of in-memory$", out, re.MULTILINE)
    assert re.search(
        r"^cheaper: streaming uses at most \d+% of the memory of ml\.m5\.large: ml\.\S+", out, re.MULTILINE
    )
    assert "\x1b" not in out

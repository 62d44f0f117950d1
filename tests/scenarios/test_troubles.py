"""Scripts that go wrong in their own ways, each run for real: how attempts end, where the next one begins, money."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

import yaml_tables
from sagefit.catalog.prices import price
from scenarios.conftest import HERE, Cloud
from scenarios.hard_runs import lines

pytestmark = pytest.mark.xdist_group("scenarios")

TROUBLES: dict[str, dict[str, Any]] = yaml_tables.read(HERE / "troubles.yaml")
GOES_ON = {"gpu_memory", "host_memory", "shared_memory", "disk", "internal"}  # the edges of jobs/odd.yaml
AT_ONCE = 4
TEST = "tests/scenarios/test_troubles.py::test_a_script_goes_wrong"


def rows() -> list[Any]:
    """A quarter runs with every change: of each class one, and what is told by more than words."""
    other = "kills_itself_in_a_roomy_host"
    usual = {row["class"]: name for name, row in reversed(TROUBLES.items()) if row.get("usual")}
    return [
        name
        if row.get("usual")
        else pytest.param(name, marks=pytest.mark.full(witness=f"{TEST}[{usual.get(row['class'], other)}]"))
        for name, row in TROUBLES.items()
    ]


def run_of(name: str) -> str:
    """The name of the run whose script has this trouble: `troubles.named` reads the number in it."""
    return f"odd-000300-{list(TROUBLES).index(name):06d}"


@pytest.fixture(scope="module")
def records(cloud: Cloud, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """A run of each trouble that is asked for, as `sagefit runs` tells of it."""
    cloud.apply("odd")
    chosen = [item.callspec.params["name"] for item in request.session.items if _is_trouble(item)]  # type: ignore[attr-defined]
    for at in range(0, len(chosen), AT_ONCE):
        for name in chosen[at : at + AT_ONCE]:
            cloud.start("odd", run_of(name))
        for name in chosen[at : at + AT_ONCE]:
            cloud.ended("odd", run_of(name))
    told = cloud.sagefit("runs", cloud.job("odd"), "--json", "--limit", str(len(chosen))).out
    return {record["run"]: record for record in map(json.loads, told.splitlines())}


def _is_trouble(item: pytest.Item) -> bool:
    return getattr(item, "originalname", None) == "test_a_script_goes_wrong"


def test_the_table_has_every_trouble_in_its_order() -> None:
    module = ast.parse((HERE / "jobs" / "odd" / "troubles.py").read_text(encoding="utf-8"))
    found = [node.name for node in module.body if isinstance(node, ast.FunctionDef) and node.args.args]
    assert [name for name in found if name in TROUBLES or name not in ("named", "fill", "error_of")] == list(TROUBLES)
    usual = sum(bool(row.get("usual")) for row in TROUBLES.values())
    assert len(TROUBLES) >= 60
    assert usual * 4 >= len(TROUBLES)


@pytest.mark.parametrize("name", rows())
def test_a_script_goes_wrong(cloud: Cloud, records: dict[str, dict[str, Any]], name: str) -> None:
    row, record = TROUBLES[name], records[run_of(name)]
    first, last = record["attempts"][0], record["attempts"][-1]
    goes_on = row["class"] in GOES_ON
    second = row.get("second", "completed")
    ends = [row["class"]] * (1 + row.get("repeats", 0)) + ([second] if goes_on else [])
    assert [attempt["outcome"] for attempt in record["attempts"]] == ends, record
    assert [attempt["routed_by"] for attempt in record["attempts"]] == [""] * len(ends)
    assert record["status"] == ("SUCCEEDED" if ends[-1] == "completed" else "FAILED")
    assert record["error"] == ("" if ends[-1] == "completed" else f"Sagefit.{ends[-1]}")
    assert row.get("evidence", "") in first["evidence"]
    assert first["model_is_empty"] is row.get("empty", False)
    assert bool(first["growth"]) is row.get("growth", False)
    if first["growth"]:
        told = cloud.sagefit("diagnose", run_of(name)).out
        assert f"perhaps a leak: {first['growth']}" in told
        script, hardware = "try: find what the script keeps from step to step", "try: add an attempt with those"
        assert told.index(script) < told.index(hardware)
    if goes_on:
        start = row.get("starts_at", 3)
        assert lines(cloud, last["training_job"])[:1] == ([] if start is None else [f"starts at step {start}"])
    for attempt in record["attempts"]:
        a_second = price(attempt["instance_type"], "us-east-1")
        assert a_second
        assert attempt["billable_seconds"] > 0
        assert attempt["usd"] == pytest.approx(attempt["billable_seconds"] * a_second.usd_per_hour / 3600)
    if row["class"] != "completed":
        assert row.get("lost", 0) < first["lost_seconds"] <= first["billable_seconds"] + 1, first
        assert 0 < first["lost_usd"] <= first["usd"]

"""The table of scenarios: what a run does when its training jobs end in a given way, on the applied state machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scenarios.conftest import SCENARIOS, TABLE, Cloud, outcomes, record, run_name

pytestmark = pytest.mark.xdist_group("scenarios")


def notes_in_order(put_out: dict[str, Any]) -> list[dict[str, Any]]:
    """What the run noted about attempts that did not complete."""
    return [put_out["attempts"][key] for key in sorted(put_out["attempts"], key=int)]


@pytest.mark.parametrize("index", range(len(SCENARIOS)), ids=lambda index: f"{index} {SCENARIOS[index]['why']}")
def test_scenario(runs: Cloud, index: int) -> None:
    scenario, name = SCENARIOS[index], run_name(index)
    execution = runs.ended(scenario["job"], name)
    put_out = record(execution)
    notes = notes_in_order(put_out)

    walked = [f"{note['attempt']} {note['class']}" for note in notes]
    walked += [f"{put_out['attempt']} completed"] if "attempt" in put_out else []
    assert walked == scenario["walk"]

    last = walked[-1].split()[1]
    assert execution["status"] == ("SUCCEEDED" if last == "completed" else "FAILED")
    assert execution.get("error") == (None if last == "completed" else f"Sagefit.{last}")

    happened = [TABLE["outcomes"][outcome] for outcome, _ in outcomes(scenario)]
    for note in notes:
        reasons = [outcome["evidence"] for outcome in happened if outcome["class"] == note["class"]]
        assert any(reason in note["evidence"] for reason in reasons), note

    created = [job.removeprefix(f"{name}-") for job in runs.training_jobs(name)]
    named = [job for note in notes for job in (*note["repeats"], note["training_job"]) if not _refused(note)]
    assert {job.removeprefix(f"{name}-") for job in named} <= set(created)
    assert sum(job[-1] in "bc" for job in created) == scenario.get("repeats", 0)
    indices = [int(job.rstrip("bc")) for job in created]
    assert indices == sorted(indices)
    assert len(set(indices)) == len([note for note in notes if not _refused(note)]) + ("attempt" in put_out)
    if "releases" in scenario:
        assert released(runs.history(scenario["job"], name)) == scenario["releases"]


def test_a_run_that_a_console_names_ends_at_once_and_says_how_it_is_named(runs: Cloud) -> None:
    job, name = SCENARIOS[0]["job"], "8d3f2c1e-9a47-4b7e-8f0a-6f1f0c2d3e4f"
    runs.start(job, name)
    execution = runs.ended(job, name)
    assert (execution["status"], execution["error"]) == ("FAILED", "Sagefit.name")
    assert f"{job}-<yymmdd>-<hhmmss>" in execution["cause"]
    assert runs.training_jobs(name) == []
    assert f"failed: Sagefit.name: {execution['cause']}" in runs.sagefit("runs", runs.job(job)).out.splitlines()


def released(history: list[dict[str, Any]]) -> list[str]:
    """The attempts whose warm instances a run gave back, and whether the call succeeded or failed."""
    found, state = [], ""
    for event in history:
        details = event.get("taskScheduledEventDetails", {})
        if details.get("resource") == "updateTrainingJob":
            asked = json.loads(details["parameters"])
            assert asked["ResourceConfig"] == {"KeepAlivePeriodInSeconds": 0}
            after = (later for later in history if later["previousEventId"] >= event["id"])
            end = next(later["type"] for later in after if later["type"] in ("TaskSucceeded", "TaskFailed"))
            found.append(f"{state.partition(':')[0]} {end.removeprefix('Task')}")
        state = event.get("stateEnteredEventDetails", {}).get("name", state)
    return found


def _refused(note: dict[str, Any]) -> bool:
    """Whether there never was a training job."""
    return bool(note["evidence"].startswith("SageMaker."))


def test_the_table_is_large_enough() -> None:
    walks = {(scenario["job"], str(scenario["outcomes"])) for scenario in SCENARIOS}
    assert len(walks) == len(SCENARIOS) >= 40

"""Every definition that this repository plans is valid Amazon States Language, and holds together.

The judge is cfn-lint, by AWS: its JSON schema of the language allows no unknown field. It is locked with its hash
already, as moto's server needs it. The interpreter's own parser is asked in ``test_asl_run.py``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from proofs.job_at_limits import ATTEMPTS, CHANNELS
from proofs.linter import findings
from proofs.machine import problems
from proofs.planned import JOBS, Planned
from sagefit.machine.graph import submits

pytestmark = pytest.mark.xdist_group("plans")

MAX_DEFINITION, MAX_REQUEST = 1_048_576, 262_144  # bytes
Definition = dict[str, Any]


@pytest.fixture(params=JOBS)
def definition(planned: Planned, request: pytest.FixtureRequest) -> Definition:
    found: Definition = planned.definitions()[request.param]
    return found


def test_all_jobs_are_planned(planned: Planned) -> None:
    assert set(planned.definitions()) == set(JOBS)


def test_definition_is_valid(definition: Definition) -> None:
    assert findings(definitions=[definition]) == []


def test_definition_holds_together(definition: Definition) -> None:
    assert list(problems(definition)) == []


def test_what_stops_the_jobs_of_ended_runs_is_valid_and_holds_together(planned: Planned) -> None:
    """An error of a list ends it, which is told by an event rule."""
    both = planned.cleanups()
    assert len(both) == 2
    assert findings(definitions=both) == []
    assert [line for each in both for line in problems(each) if "without a catch-all" not in line] == []


def _misspell(states: Definition) -> None:
    states["in-memory: wait"]["Secnds"] = 1


def _end_nowhere(states: Definition) -> None:
    del states["completed"]["Next"]


def _unknown_type(states: Definition) -> None:
    states["completed"]["Type"] = "Psas"


@pytest.mark.parametrize("spoil", [_misspell, _end_nowhere, _unknown_type])
def test_linter_finds_what_is_invalid(planned: Planned, spoil: Callable[[Definition], None]) -> None:
    spoiled = copy.deepcopy(planned.definitions()["quickstart"])
    spoil(spoiled["States"])
    assert any(finding.startswith("E3601") for finding in findings(definitions=[spoiled]))


@pytest.mark.parametrize(
    ("state", "change", "problem"),
    [
        ("in-memory: submit", {"Next": "nowhere"}, "'nowhere', which is no state"),
        ("in-memory: submit", {"Catch": []}, "without a catch-all"),
        ("lost", {"Type": "Pass", "Next": "done"}, "lost: nothing leads there"),
        ("completed", {"Next": "completed"}, "completed: no end can be reached"),
        ("x" * 81, {"Type": "Pass", "Next": "done"}, "at most 80 characters"),
        ("second end", {"Type": "Fail"}, "not in ['Fail', 'Fail', 'Succeed']"),
    ],
)
def test_check_finds_what_does_not_hold(planned: Planned, state: str, change: dict[str, Any], problem: str) -> None:
    spoiled = copy.deepcopy(planned.definitions()["quickstart"])
    spoiled["States"].setdefault(state, {}).update(change)
    assert any(problem in line for line in problems(spoiled))


def test_choice_without_default_is_found(planned: Planned) -> None:
    spoiled = copy.deepcopy(planned.definitions()["quickstart"])
    del spoiled["States"]["classify"]["Default"]
    assert any("without Default" in line for line in problems(spoiled))


def test_largest_job_is_as_large_as_it_says(planned: Planned) -> None:
    requests = submits(planned.definitions()["at_limits"])
    assert len(requests) == ATTEMPTS
    assert {len(request["InputDataConfig"]) for request in requests} == {CHANNELS}


def test_largest_definition_fits(planned: Planned) -> None:
    """As sent: Terraform writes ``<``, ``>`` and ``&`` as six characters."""
    assert len(planned.texts()["at_limits"].encode()) < MAX_DEFINITION


def test_largest_request_fits(planned: Planned) -> None:
    assert (
        max(len(json.dumps(request).encode()) for request in submits(planned.definitions()["at_limits"])) < MAX_REQUEST
    )

"""Runs of planned definitions on the embedded cloud: the service's limits on events and on the data between states."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cloud.aws_user import Aws
from proofs.failing_cloud import ended, start
from proofs.job_at_limits import ATTEMPTS, NAME
from proofs.planned import JOBS, Planned
from sagefit.planning.cost import REPEATS

pytestmark = pytest.mark.xdist_group("plans")

# https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
MAX_EVENTS, MAX_STATE_BYTES, MAX_CAUSE = 25_000, 262_144, 32_768
Ended = tuple[dict[str, Any], list[dict[str, Any]]]  # an execution's end and its history


@pytest.fixture(scope="module")
def largest(aws: Aws, planned: Planned) -> Ended:
    arn = start(aws, NAME, planned.definitions()["at_limits"])
    return ended(aws, arn)


def test_largest_run_walks_all_attempts(largest: Ended) -> None:
    end, _ = largest
    assert (end["status"], end["error"]) == ("FAILED", "Sagefit.capacity")
    assert len(json.loads(end["cause"])) == ATTEMPTS


def test_cause_of_the_largest_run_fits(largest: Ended) -> None:
    assert len(largest[0]["cause"]) < MAX_CAUSE


def test_data_between_states_fits(largest: Ended) -> None:
    """Half of the limit, since a description on AWS tells more than one here: metrics, transitions, times."""
    found = {text: key for event in largest[1] for key, text in texts(event)}
    longest = max(found, key=lambda text: len(text.encode()))
    assert len(longest.encode()) < MAX_STATE_BYTES / 2, found[longest]


def texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every input, output and parameter in an event."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from texts(item, name)
    elif isinstance(value, str) and key in ("input", "output", "parameters", "cause"):
        yield key, value


def test_interpreter_finds_what_the_schema_lets_pass(aws: Aws, planned: Planned) -> None:
    spoiled = planned.texts()["quickstart"].replace('"StringMatches"', '"StringIsLike"')
    answer = aws.client("stepfunctions").validate_state_machine_definition(definition=spoiled)
    assert answer["result"] == "FAIL"


def test_interpreter_accepts_every_definition(aws: Aws, planned: Planned) -> None:
    for name, definition in planned.texts().items():
        answer = aws.client("stepfunctions").validate_state_machine_definition(definition=definition)
        assert answer["result"] == "OK", (name, answer["diagnostics"])


@pytest.mark.parametrize("job", JOBS)
def test_history_holds_the_longest_run(planned: Planned, largest: Ended, job: str) -> None:
    """A run looks at its training jobs until its time is over, and walks through all states as often as it repeats.

    What is left is for retries of a look, three events each.
    """
    definition, cost = planned.definitions()[job], events_of_a_state(largest[1])
    states = definition["States"]
    seconds = min(state["Seconds"] for name, state in states.items() if name.endswith(": wait"))
    look = cost["Wait"] + cost["Task"] + cost["Choice"]  # wait, describe, judge
    once = sum(cost.get(state["Type"], 2) for state in states.values())
    assert definition["TimeoutSeconds"] / seconds * look + (1 + REPEATS) * once < MAX_EVENTS


def events_of_a_state(history: list[dict[str, Any]]) -> dict[str, int]:
    """How many events a state of each type costs."""
    found: dict[str, int] = {}
    for index, event in enumerate(history):
        if event["type"].endswith("StateEntered") and event["type"] != "FailStateEntered":
            kind = event["type"].removesuffix("StateEntered")
            end = next(i for i in range(index, len(history)) if history[i]["type"] == f"{kind}StateExited")
            found[kind] = end - index + 1
    return found


def test_states_cost_what_the_interval_was_computed_with(largest: Ended) -> None:
    """modules/training-job computes poll_seconds with nine events for a look."""
    assert events_of_a_state(largest[1]) == {"Pass": 2, "Wait": 2, "Choice": 2, "Task": 5}

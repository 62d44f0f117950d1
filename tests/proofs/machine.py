"""A state machine definition as a graph, and what has to hold for ours beyond the language's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MAX_NAME = 80  # characters of a state's name (States language)


def problems(definition: dict[str, Any]) -> Iterator[str]:
    """Everything that is wrong with a definition."""
    states: dict[str, dict[str, Any]] = definition["States"]
    reached = reachable(definition)
    for name, state in states.items():
        if len(name) > MAX_NAME:
            yield f"{name}: a name has at most {MAX_NAME} characters"
        for target in transitions(state):
            if target not in states:
                yield f"{name}: leads to {target!r}, which is no state"
        if name not in reached:
            yield f"{name}: nothing leads there"
        if state["Type"] == "Choice" and "Default" not in state:
            yield f"{name}: a choice without Default ends the run when no rule matches"
        if state["Type"] == "Task" and not any(
            "States.ALL" in catch["ErrorEquals"] for catch in state.get("Catch", [])
        ):
            yield f"{name}: an error of a task without a catch-all ends the run"
        if not any(states[last]["Type"] in ("Succeed", "Fail") for last in reachable(definition, name)):
            yield f"{name}: no end can be reached from there"
    ends = sorted(state["Type"] for state in states.values() if not list(transitions(state)))
    if ends != ["Fail", "Succeed"]:
        yield f"a run ends in one success and one failure, not in {ends}"


def transitions(state: dict[str, Any]) -> Iterator[str]:
    """Where a state may lead."""
    for field in ("Next", "Default"):
        if field in state:
            yield state[field]
    for field in ("Choices", "Catch"):
        yield from (rule["Next"] for rule in state.get(field, []))


def reachable(definition: dict[str, Any], start: str | None = None) -> set[str]:
    """The states that can follow a state, itself included; from the first one by default."""
    states = definition["States"]
    found: set[str] = set()
    left = [start or definition["StartAt"]]
    while left:
        name = left.pop()
        if name in states and name not in found:
            found.add(name)
            left += transitions(states[name])
    return found


def calls(definition: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The API calls its tasks make: action of SageMaker's API, in lower camel case, and parameters."""
    return [
        (state["Resource"].rpartition(":")[2], state["Parameters"])
        for state in definition["States"].values()
        if state["Type"] == "Task"
    ]


def submits(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """The requests for training jobs."""
    return [parameters for action, parameters in calls(definition) if action == "createTrainingJob"]

"""The definition of a state machine as a graph, and the requests that its tasks make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


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

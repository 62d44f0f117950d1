"""What has to hold for our definitions beyond the language's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.machine.graph import reachable, transitions

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
    begun = {name: state for name, state in states.items() if name != "misnamed"}  # which is no end of a run that began
    ends = sorted(state["Type"] for state in begun.values() if not list(transitions(state)))
    if ends != ["Fail", "Succeed"]:
        yield f"a run ends in one success and one failure, not in {ends}"

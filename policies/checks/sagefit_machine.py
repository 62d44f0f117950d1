"""A state machine definition: the training jobs it asks for, and the order in which they can follow each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Definition = dict[str, Any]
State = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request for training jobs: the state that makes it, and its parameters as CreateTrainingJob has them."""

    state: str
    parameters: dict[str, Any]

    def get(self, *path: str) -> Any:
        """A field of the request, or None."""
        found: Any = self.parameters
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    @property
    def tags(self) -> dict[str, str]:
        """The tags that the training job will have."""
        return {tag["Key"]: str(tag["Value"]) for tag in self.parameters.get("Tags", [])}


def requests(definition: Definition) -> list[Request]:
    """All requests, those inside of branches and loops over items included."""
    found = []
    for name, state in definition.get("States", {}).items():
        if creates(state):
            asked = state.get("Parameters") or state.get("Arguments") or {}
            # A tuning job makes its training jobs of a definition, and gives them its tags.
            found.append(Request(name, {**asked, **asked.get("TrainingJobDefinition", {})}))
        for inner in [*state.get("Branches", []), state.get("ItemProcessor"), state.get("Iterator")]:
            found += requests(inner) if inner else []
    return found


def creates(state: State) -> bool:
    """Whether a state asks for a training job or a tuning job, through either integration."""
    resource = str(state.get("Resource", "")).lower()
    return "createtrainingjob" in resource or "createhyperparametertuningjob" in resource


def endless(definition: Definition) -> list[str]:
    """The states that ask for a training job and can follow themselves without anybody counting.

    The walk knows which attempt it is in, because the states that all attempts share lead back by that. A rule that
    counts, or that asks for a value which its target replaces, lets a run pass a limited number of times; such edges
    are left out, and what still leads back has no limit.
    """
    states: dict[str, State] = definition.get("States", {})
    return [name for name, state in states.items() if creates(state) and _returns(states, name)]


def _returns(states: dict[str, State], start: str) -> bool:
    left, seen = [(start, {})], set()
    while left:
        name, known = left.pop()
        state = states[name]
        if creates(state):
            known = {**known, **_written(state)}
        for target in _targets(states, state, known):
            if target == start:
                return True
            key = (target, tuple(sorted(known.items())))
            if target in states and key not in seen:
                seen.add(key)
                left.append((target, known))
    return False


def _written(state: State) -> dict[str, str]:
    """The literal texts that a state writes, by their path."""
    path = state.get("ResultPath", "$") or "$"
    given = state.get("ResultSelector") or state.get("Parameters") or state.get("Result") or {}
    if isinstance(given, str):
        return {path: given}
    return {f"{path}.{key}": text for key, text in given.items() if isinstance(text, str) and not key.endswith(".$")}


def _targets(states: dict[str, State], state: State, known: dict[str, str]) -> Iterator[str]:
    """Where a state may lead without a limit, given the texts that are known."""
    for rule in state.get("Choices", []):
        tests = list(_tests(rule))
        asked = {test.get("Variable"): test["StringEquals"] for test in tests if "StringEquals" in test}
        if any(name in known and known[name] != text for name, text in asked.items()):
            continue
        if not any(_counts(test) for test in tests) and not _used_up(states.get(rule["Next"], {}), asked):
            yield rule["Next"]
        if len(tests) == 1 and asked and known.items() >= asked.items():
            return  # this rule holds, so none after it is looked at
    if "Default" in state:
        yield state["Default"]
    if "Next" in state:
        yield state["Next"]
    for caught in state.get("Catch", []):
        yield caught["Next"]


def _tests(rule: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The comparisons that must all hold for a rule; those under Or and Not limit nothing for sure."""
    if "And" in rule:
        for part in rule["And"]:
            yield from _tests(part)
    elif "Or" not in rule and "Not" not in rule:
        yield rule


def _counts(test: dict[str, Any]) -> bool:
    return any(name.startswith("NumericLessThan") for name in test)


def _used_up(target: State, asked: dict[str, str]) -> bool:
    """Whether the target replaces a value that was asked for, as the letters of repeats do."""
    written = _written(target) if target.get("Type") == "Pass" else {}
    return any(written.get(name, text) != text for name, text in asked.items())

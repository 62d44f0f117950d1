"""Walks a definition in the Amazon States Language: the part of the language that the module uses, without time."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

_INTRINSIC = re.compile(r"States\.(\w+)\((.*)\)", re.DOTALL)
_ARGUMENT = re.compile(r"'((?:\\.|[^'\\])*)'|([^,\s]+)")
_STEP = re.compile(r"\.(\w+)|\['([^']+)'\]|\[(\d+)\]")

Call = Callable[[str, dict[str, Any]], dict[str, Any]]


class CallError(Exception):
    """A call that was refused: error name, and cause where there is one."""


class EndlessError(AssertionError):
    """More steps than any run needs."""


def walk(definition: dict[str, Any], run: str, call: Call, *, steps: int = 20_000) -> tuple[str, Any]:
    """Walk to the end; returns ``SUCCEEDED`` with the output, or ``FAILED`` with error and cause."""
    context = {"Execution": {"Name": run}}
    data: Any = {}
    name = definition["StartAt"]
    for _ in range(steps):
        state = definition["States"][name]
        kind = state["Type"]
        if kind == "Succeed":
            return "SUCCEEDED", data
        if kind == "Fail" and "ErrorPath" not in state:
            return "FAILED", (state["Error"], state["Cause"])
        if kind == "Fail":
            return "FAILED", (_value(state["ErrorPath"], data, context), _value(state["CausePath"], data, context))
        if kind == "Choice":
            name = next((rule["Next"] for rule in state["Choices"] if _holds(rule, data, context)), state["Default"])
            continue
        try:
            data = _after(state, data, context, call)
            name = state["Next"]
        except CallError as error:
            catch = state["Catch"][0]
            data = _put(data, catch["ResultPath"], dict(zip(("Error", "Cause"), error.args, strict=False)))
            name = catch["Next"]
    raise EndlessError(name)


def _after(state: dict[str, Any], data: Any, context: Any, call: Call) -> Any:
    if state["Type"] == "Wait":
        return data
    given = _look(data, state["InputPath"]) if "InputPath" in state else data
    if "Parameters" in state:
        given = _template(state["Parameters"], given, context)
    if state["Type"] == "Task":
        given = call(state["Resource"].rpartition(":")[2], given)
        given = _template(state["ResultSelector"], given, context) if "ResultSelector" in state else given
    return _put(data, state.get("ResultPath", "$"), state.get("Result", given))


def _template(part: Any, data: Any, context: Any) -> Any:
    if isinstance(part, dict):
        return {
            key.removesuffix(".$"): _value(value, data, context)
            if key.endswith(".$")
            else _template(value, data, context)
            for key, value in part.items()
        }
    return [_template(item, data, context) for item in part] if isinstance(part, list) else part


def _value(text: str, data: Any, context: Any) -> Any:
    found = _INTRINSIC.fullmatch(text)
    if found is None:
        return _look(context, text[1:]) if text.startswith("$$") else _look(data, text)
    values = [
        _value(path, data, context) if path.startswith("$") else json.loads(path) if path else quoted
        for quoted, path in _ARGUMENT.findall(found[2])
    ]
    if found[1] == "Format":
        return values[0].replace("{}", "%s") % tuple(values[1:])
    if found[1] == "MathAdd":
        return values[0] + values[1]
    assert found[1] in ("Array", "JsonToString"), text
    return values if found[1] == "Array" else json.dumps(values[0])


def _keys(path: str) -> list[str | int]:
    return [int(index) if index else word or quoted for word, quoted, index in _STEP.findall(path)]


def _look(data: Any, path: str) -> Any:
    for key in _keys(path):
        data = data[key]
    return data


def _put(data: Any, path: str | None, value: Any) -> Any:
    if path is None:
        return data
    keys = _keys(path)
    if not keys:
        return value
    changed = copy.deepcopy(data)
    place = changed
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return changed


def _holds(rule: dict[str, Any], data: Any, context: Any) -> bool:
    if "And" in rule:
        return all(_holds(part, data, context) for part in rule["And"])
    if "Not" in rule:
        return not _holds(rule["Not"], data, context)
    try:
        value = _value(rule["Variable"], data, context)
    except KeyError:
        assert "IsPresent" in rule, f"{rule['Variable']} is absent, which would end the run"
        return rule["IsPresent"] is False
    if "IsPresent" in rule:
        return bool(rule["IsPresent"])
    if "StringMatches" in rule:
        return _matches(rule["StringMatches"], value)
    return bool(value == rule["StringEquals"] if "StringEquals" in rule else value <= rule["NumericLessThanEquals"])


def _matches(glob: str, value: str) -> bool:
    parts = re.split(r"(?<!\\)\*", glob)
    return bool(re.fullmatch(".*".join(re.escape(re.sub(r"\\(.)", r"\1", part)) for part in parts), value, re.DOTALL))

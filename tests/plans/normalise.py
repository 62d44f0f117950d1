"""A plan as it is compared: what the modules decide, without what differs between machines, accounts and providers.

The result has four parts. ``values`` holds the attributes of every managed resource by address, ``counts`` the number
of resources by type, ``outputs`` the outputs, and ``warnings`` what check blocks object to.

JSON in attributes is parsed, and the statements of a policy are named by their ``Sid``, so that a part of a policy or
of a state machine can be named like any other attribute. Sets are lists in a plan; all lists of attributes are sorted,
but not those inside JSON, where order means something (Choice rules), save for those of IAM, where it does not.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

Plan = dict[str, Any]
UNKNOWN, SENSITIVE = "<unknown>", "<sensitive>"

# Every resource of provider 6 has a region; tags_all repeats tags; timeouts are for the provider alone.
_DROPPED = {"region", "tags_all", "timeouts"}

_TOKENS = [
    (re.compile(r"\b123456789012\b"), "<account>"),
    (re.compile(r"\bus-east-1"), "<region>"),
    (re.compile(r"\barn:aws:"), "arn:<partition>:"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "<digest>"),  # of files, in the keys of their objects
]


def normalise(plan: dict[str, Any], module: str) -> Plan:
    """The part of a plan's JSON that one module call at its root made."""
    prefix = f"module.{module}."
    changes = [
        change
        for change in plan["resource_changes"]
        if change["mode"] == "managed" and change["address"].startswith(prefix)
    ]
    output = plan["output_changes"][module]
    return {
        "values": {
            change["address"].removeprefix(prefix): _attributes(change["change"])
            for change in sorted(changes, key=lambda change: str(change["address"]))
        },
        "counts": dict(sorted(Counter(change["type"] for change in changes).items())),
        "outputs": _tidy(_marked(output["after"], output["after_unknown"], output["after_sensitive"]), ordered=True),
        "warnings": sorted(
            problem["message"]
            for check in plan["checks"]
            for instance in check.get("instances", [])
            for problem in instance.get("problems", [])
            if check["address"]["to_display"].startswith(prefix)
        ),
    }


def _attributes(change: dict[str, Any]) -> Any:
    marked = _marked(change["after"], change["after_unknown"], change["after_sensitive"])
    return _tidy({name: value for name, value in marked.items() if name not in _DROPPED}, ordered=False)


def _marked(value: Any, unknown: Any, sensitive: Any) -> Any:
    """A value with marks where it is known after apply only, or is a secret."""
    if unknown is True:
        return UNKNOWN
    if sensitive is True and value is not None:
        return SENSITIVE
    if isinstance(value, dict) or (value is None and isinstance(unknown, dict)):
        names = {**(value or {}), **(unknown or {})}
        return {name: _marked((value or {}).get(name), _part(unknown, name), _part(sensitive, name)) for name in names}
    if isinstance(value, list):
        return [_marked(item, _part(unknown, index), _part(sensitive, index)) for index, item in enumerate(value)]
    return value


def _part(marks: Any, key: str | int) -> Any:
    """Marks of a part; they are left out where there are none."""
    if isinstance(marks, dict):
        return marks.get(str(key), False)
    if isinstance(marks, list) and isinstance(key, int) and key < len(marks):
        return marks[key]
    return False


def _tidy(value: Any, *, ordered: bool) -> Any:
    """Without nulls and empty collections, sorted, JSON parsed."""
    if isinstance(value, dict):
        parts = {name: _tidy(part, ordered=ordered) for name, part in sorted(value.items())}
        return _by_sid({name: part for name, part in parts.items() if part not in (None, [], {})})
    if isinstance(value, list):
        items = [_tidy(item, ordered=ordered) for item in value]
        return items if ordered else sorted(items, key=json.dumps)
    if isinstance(value, str):
        return _document(value)
    return value


def _document(text: str) -> Any:
    """The document in a string, or the string itself."""
    text = _tokens(text)
    if text.startswith(("{", "[")):
        try:
            return _sorted_document(json.loads(text))
        except ValueError:
            return text
    return text


def _sorted_document(value: Any) -> Any:
    if isinstance(value, dict):
        return _by_sid({name: _sorted_document(part) for name, part in sorted(value.items())})
    if isinstance(value, list):
        return [_sorted_document(item) for item in value]
    return value


def _by_sid(document: dict[str, Any]) -> dict[str, Any]:
    """A policy with its statements named, for they have no order."""
    statements = document.get("Statement")
    if not isinstance(statements, list) or not all(isinstance(s, dict) and "Sid" in s for s in statements):
        return document
    named = {statement["Sid"]: _sorted_lists(statement) for statement in statements}
    assert len(named) == len(statements), f"a Sid is used twice: {[s['Sid'] for s in statements]}"
    return document | {"Statement": dict(sorted(named.items()))}


def _sorted_lists(value: Any) -> Any:
    """IAM's lists are sets: actions, resources, principals and the values of conditions."""
    if isinstance(value, dict):
        return {name: _sorted_lists(part) for name, part in value.items() if name != "Sid"}
    if isinstance(value, list):
        return sorted(value)
    return value


def _tokens(text: str) -> str:
    for pattern, token in _TOKENS:
        text = pattern.sub(token, text)
    return text

"""Inventories: the part of a plan that a YAML file names must be planned as it says; the rest is free.

A mapping names parts, and what it does not name is free. Two things are compared whole: a list, item by item, where an
item that is a mapping again names parts; and the statements of a policy, for one more could allow anything.
``__missing__`` says that there is no such part, or that it is known after apply only.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from plans.normalise import UNKNOWN, Plan

MISSING = "__missing__"
_ABSENT = object()
_PLAIN = re.compile(r"[A-Za-z][\w./:-]*")  # texts that YAML takes anywhere without quotes, unless they are true or null


def check(path: Path, planned: Plan, name: str) -> None:
    """Fail with what is not planned as the inventory of a case says, and with the command that writes it anew."""
    found = differences(path, planned)
    assert not found, "\n".join(["", *found, "", regenerate(name)])


def regenerate(name: str) -> str:
    """What to do where the plan is right and what is kept is not."""
    return f"- is kept, + is planned. Where the plan is right: make snapshot ARGS=\"-k '{name}'\""


def differences(path: Path, planned: Plan) -> list[str]:
    """What is not planned as an inventory says: the place, what the inventory says and what the plan says."""
    expected = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not expected:
        return [f"{path.name} is empty"]
    return list(_differences(expected, _counted(expected, planned), ""))


def _differences(expected: Any, planned: Any, place: str, *, whole: bool = False) -> Iterator[str]:
    if expected == MISSING and planned in (_ABSENT, UNKNOWN):
        return
    if isinstance(expected, dict) and isinstance(planned, dict):
        names = dict.fromkeys([*expected, *planned] if whole else expected)
        for name in names:
            said, part = expected.get(name, _ABSENT), planned.get(name, _ABSENT)
            yield from _differences(said, part, f"{place} > {name}" if place else name, whole=whole or _is_whole(name))
    elif isinstance(expected, list) and isinstance(planned, list) and len(expected) == len(planned):
        for index, pair in enumerate(zip(expected, planned, strict=True)):
            yield from _differences(*pair, f"{place} > {index}", whole=whole)
    elif expected != planned:
        yield f"{place}\n  - {_line(expected)}\n  + {_line(planned)}"


def _is_whole(name: str) -> bool:
    return name == "Statement"


def _counted(expected: dict[str, Any], planned: Plan) -> Plan:
    """The plan with a count of 0 for the types that an inventory asks for in vain."""
    return planned | {"counts": dict.fromkeys(expected.get("counts") or {}, 0) | planned["counts"]}


def _line(value: Any) -> str:
    return MISSING if value in (_ABSENT, UNKNOWN) else json.dumps(value, ensure_ascii=False, sort_keys=True)


# --- Writing an inventory anew ---------------------------------------------------------------------------------------


def refresh(path: Path, planned: Plan) -> None:
    """Write an inventory anew: an empty one gets all that is known, another one new values at the places it names.

    Comments and the order of an inventory stay, and so does what it says rightly.
    """
    text = path.read_text(encoding="utf-8")
    root, expected = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    if root is None or not expected:
        path.write_text(text + _block(_known(planned)), encoding="utf-8")
        return
    for node, value in reversed(list(_repairs(root, expected, _counted(expected, planned)))):
        start, end = node.start_mark.index, _end(node)
        # PyYAML sees the end of a text block behind its line end.
        text = text[:start] + _text(node, value) + text[start + len(text[start:end].rstrip()) :]
    path.write_text(text, encoding="utf-8")


def _repairs(node: yaml.Node, expected: Any, planned: Any, *, whole: bool = False) -> Iterator[tuple[yaml.Node, Any]]:
    """Parts of the file that are wrong, in their order, and the values that belong there."""
    is_named = isinstance(planned, dict) and not (whole and planned.keys() - expected)
    if isinstance(node, yaml.MappingNode) and is_named:
        for (_, part), (name, said) in zip(node.value, expected.items(), strict=True):
            yield from _repairs(part, said, planned.get(name, _ABSENT), whole=whole or _is_whole(name))
    elif isinstance(node, yaml.SequenceNode) and isinstance(planned, list) and len(expected) == len(planned):
        for part, said, value in zip(node.value, expected, planned, strict=True):
            yield from _repairs(part, said, value, whole=whole)
    elif any(_differences(expected, planned, "", whole=whole)):
        yield node, planned


def _end(node: yaml.Node) -> int:
    """Where the text of a node ends; that of a block ends with its last part, before the comments that follow."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _text(node: yaml.Node, value: Any) -> str:
    """A value in the place of a node: a block where one stood, else on the line."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and isinstance(value, (dict, list)) and value:
        return textwrap.indent(_block(_known(value)), " " * node.start_mark.column).strip()
    if isinstance(value, str) and _PLAIN.fullmatch(value) and yaml.safe_load(value) == value:
        return value
    return _line(_known(value))


def _block(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _known(value: Any) -> Any:
    """Without what is known after apply only."""
    if isinstance(value, dict):
        return {name: _known(part) for name, part in value.items() if part != UNKNOWN}
    if isinstance(value, list):
        return [_known(item) for item in value]
    return value


class _Dumper(yaml.SafeDumper):
    """Lists are indented, so that a block in their place is too."""

    def increase_indent(self, flow: bool = False, *_: Any, **__: Any) -> None:
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, _data: Any) -> bool:
        return True

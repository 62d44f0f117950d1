"""Changes of a job file's text that leave all else in it as it is: comments, order, quotes, blank lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import yaml

from sagefit.errors import SagefitError
from sagefit.job.key import Key, dotted

STEP = 2  # spaces that a level of a block is indented by, where there is nothing to go by


class Edit(NamedTuple):
    """A value that a field is to have. What is around it is written where it is missing."""

    field: Key
    value: Any


def edited(text: str, edits: Sequence[Edit]) -> str:
    """``text`` of a job file with all ``edits`` in it.

    The result is read again: it says what the edits ask for, and nothing else has changed. Raises SagefitError where
    that is not so, as for what an alias stands for.

    >>> print(edited("resources: { max_runtime: 1h } # enough", [Edit(("resources", "max_runtime"), "2h")]))
    resources: { max_runtime: 2h } # enough
    """
    for edit in edits:
        changed = _edited(text, edit)
        try:
            right = changed is not None and yaml.safe_load(changed) == _with(yaml.safe_load(text) or {}, edit)
        except (yaml.YAMLError, TypeError, LookupError):  # there is no such place
            right = False
        if changed is None or not right:
            raise SagefitError(
                f"{dotted(edit.field)} cannot be changed in a file that is written like this",
                hint=f"write {dotted(edit.field)}: {_scalar(edit.value)} yourself",
            )
        text = changed
    return text


def _with(data: Any, edit: Edit) -> Any:
    """What a file says, with the edit."""
    changed = _alone(data)
    at, (*above, last) = changed, edit.field
    for part in above:
        if isinstance(at, dict) and at.get(part) is None:
            at[part] = {}
        at = at[part]
    at[last] = edit.value
    return changed


def _alone(data: Any) -> Any:
    """A copy in which nothing stands in two places, as what an alias names does."""
    if isinstance(data, dict):
        return {key: _alone(value) for key, value in data.items()}
    return [_alone(value) for value in data] if isinstance(data, list) else data


def _edited(text: str, edit: Edit) -> str | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    node, missing = root, list(edit.field)
    holder: yaml.Node | None = None
    while missing and (child := _child(node, missing[0])) is not None:
        holder, node, missing = node, child, missing[1:]
    if not missing:
        return _replaced(text, node, edit.value)
    if isinstance(node, yaml.MappingNode):
        return _added(text, node, missing, edit.value)
    if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null") and isinstance(holder, yaml.MappingNode):
        return _replaced(text, node, _nested(missing, edit.value))
    return None


def _child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((child for key, child in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child: yaml.Node = node.value[part]
        return child
    return None


def _replaced(text: str, node: yaml.Node | None, value: Any) -> str | None:
    """``text`` with another value in the place of a node that stands on its line, or of a list without comments."""
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return None
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        begin, end = node.start_mark.index, _end_of(text, node)
        return None if "#" in text[begin:end] else f"{text[:begin]}{' ' * STEP}{_scalar(value)}{text[end:]}"
    if not isinstance(node, yaml.ScalarNode) and not getattr(node, "flow_style", False):
        return None
    assert node is not None  # noqa: S101 - for mypy
    begin, end = node.start_mark.index, node.end_mark.index
    space = " " if begin == end and text[:begin].endswith(":") else ""
    return f"{text[:begin]}{space}{_scalar(value)}{text[end:]}"


def _added(text: str, node: yaml.MappingNode, missing: Sequence[str | int], value: Any) -> str | None:
    """``text`` with a new last key in a mapping."""
    if node.flow_style:
        close = node.end_mark.index - 1
        inside = text[node.start_mark.index + 1 : close].rstrip()
        at = node.start_mark.index + 1 + len(inside)
        new = f"{_scalar(missing[0])}: {_scalar(_nested(missing[1:], value))}"
        if not inside.strip():
            return f"{text[:at]} {new} {text[close:]}"
        return f"{text[:at].removesuffix(',')}, {new}{text[at:]}"
    if not node.value:
        return None
    at, indent = _end_of(text, node), node.value[0][0].start_mark.column
    lines = [f"{' ' * (indent + STEP * level)}{_scalar(part)}:" for level, part in enumerate(missing)]
    line_end = "\r\n" if "\r\n" in text else "\n"
    return f"{text[:at]}{line_end}{line_end.join(lines)} {_scalar(value)}{text[at:]}"


def _end_of(text: str, node: yaml.Node) -> int:
    """The end of the last line of a node, with the comment that is on it."""
    while not getattr(node, "flow_style", False) and isinstance(node.value, list) and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):  # which ends where the next thing begins
        end = len(text[:end].rstrip())
    line = text.find("\n", end)
    end = len(text) if line < 0 else line
    return end - 1 if text[:end].endswith("\r") else end


def _nested(missing: Sequence[str | int], value: Any) -> Any:
    for part in reversed(missing):
        value = {part: value}
    return value


def _scalar(value: Any) -> str:
    """A value as it stands in a line."""
    told = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), sort_keys=False)
    return told.removesuffix("\n").removesuffix("...").rstrip("\n")

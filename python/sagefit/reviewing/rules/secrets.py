"""Secrets that lose their mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sagefit.reviewing.message import say
from sagefit.reviewing.plan import Change, Plan
from sagefit.reviewing.rulebook import Hit
from sagefit.reviewing.rules.context import Context
from sagefit.reviewing.values import Path, shade
from sagefit.secret_names import is_secret_name


def judge(change: Change, context: Context) -> Iterator[Hit]:  # noqa: ARG001
    """Attributes that were sensitive and are not any more, and parameters that store a secret in plain text."""
    if change.type == "aws_ssm_parameter" and change.kind in ("create", "update", "replace"):
        yield from _plain(change)
    if change.kind not in ("update", "replace") or not change.change.before_sensitive:
        return
    values = change.change
    for path in _lost(values.before_sensitive, values.after_sensitive, values.before, values.after, ()):
        yield Hit("secret-readable", say("{} is no longer sensitive", ".".join(map(str, path))))


def _plain(change: Change) -> Iterator[Hit]:
    """A parameter that is not encrypted, which its name says should be: new, or with a new name or value."""
    name, of_type = str(change.after.get("name") or ""), change.after.get("type")
    told = name.rpartition("/")[2]
    same = all(change.before.get(field) == change.after.get(field) for field in ("name", "value", "version"))
    if of_type in ("String", "StringList") and is_secret_name(told) and not (change.kind == "update" and same):
        yield Hit("secret-readable", say("{} is of type {}, which is stored in plain text", name, of_type))


def outputs(plan: Plan) -> Iterator[tuple[str, Hit]]:
    """Outputs, by name, that were sensitive and are not any more."""
    for name, output in plan.output_changes.items():
        hides = output.before_sensitive is True and output.after_sensitive is not True
        if hides and output.actions in (["update"], ["create"], ["no-op"]) and output.before is not None:
            yield name, Hit("secret-readable", say("the output is no longer sensitive"))


def _lost(old: Any, new: Any, before: Any, after: Any, path: Path) -> Iterator[Path]:
    """Paths marked in ``old`` and not in ``new``, where there was something and is something."""
    if new is True or before is None or after is None:
        return
    if old is True:
        if not isinstance(before, bool) and before not in ("", [], {}) and not _covered(new, after):
            yield path
    elif isinstance(old, dict) and isinstance(before, dict) and isinstance(after, dict):
        for key, mark in old.items():
            yield from _lost(mark, shade(new, key), before.get(key), after.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(before, list) and isinstance(after, list):
        for index, mark in enumerate(old):
            if index < len(before) and index < len(after):
                yield from _lost(mark, shade(new, index), before[index], after[index], (*path, index))


def _covered(marks: Any, value: Any) -> bool:
    """Whether all of ``value`` is marked, node by node."""
    if isinstance(marks, dict) and isinstance(value, dict) and value:
        return all(marks.get(key) is True for key in value)
    return isinstance(marks, list) and isinstance(value, list) and bool(value) and all(mark is True for mark in marks)

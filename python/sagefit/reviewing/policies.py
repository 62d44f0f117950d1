"""What the policies say: which of their failures this plan brings, which it ends, and which were there before.

A scan takes minutes on a large plan, and judges resources one by one. So it gets only resources that change and their
neighbours, without secrets. The base is the same plan with every value as it is now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sagefit.documents import parsed
from sagefit.reviewing.diff import SENSITIVE
from sagefit.reviewing.document import Document
from sagefit.reviewing.hidden import hidden_by_name
from sagefit.reviewing.plan import Change
from sagefit.reviewing.redact import Redactor
from sagefit.reviewing.references import References
from sagefit.reviewing.rulebook import SEVERITIES, Severity

if TYPE_CHECKING:
    from sagefit.checkov import Finding


@dataclass(frozen=True)
class PolicyFailure:
    """A resource that fails a check."""

    check: str
    severity: Severity
    address: str
    message: str


@dataclass(frozen=True)
class PolicyDiff:
    """Failures that this plan brings, ends, and leaves as they are."""

    new: tuple[PolicyFailure, ...]
    fixed: tuple[PolicyFailure, ...]
    old: tuple[PolicyFailure, ...]


def compare(base: Iterable[Finding], head: Iterable[Finding], moves: Mapping[str, str] | None = None) -> PolicyDiff:
    """Failures of ``head`` beside those of ``base``; ``moves`` maps old addresses to new ones."""
    before = {key: failure for key, failure in (_failure(each, moves or {}) for each in base) if failure}
    after = {key: failure for key, failure in (_failure(each, {}) for each in head) if failure}
    return PolicyDiff(
        tuple(after[key] for key in sorted(after.keys() - before.keys())),
        tuple(before[key] for key in sorted(before.keys() - after.keys())),
        tuple(after[key] for key in sorted(after.keys() & before.keys())),
    )


def _failure(found: Finding, moves: Mapping[str, str]) -> tuple[tuple[str, str], PolicyFailure | None]:
    address = moves.get(found.address, found.address)
    if found.status != "failed":
        return (found.check, address), None
    severity: Severity = next((each for each in SEVERITIES if each == found.severity.lower()), "medium")
    return (found.check, address), PolicyFailure(found.check, severity, address, found.message)


def moves_of(document: Document) -> dict[str, str]:
    """New addresses by old ones."""
    return {c.previous_address: c.address for c in document.plan.resource_changes if c.previous_address}


def scoped(document: Document) -> dict[str, Any]:
    """The plan reduced to the resources that change and their neighbours, as they will be and without secrets."""
    return _cut(document, after=True)


def scoped_base(document: Document) -> dict[str, Any]:
    """The same resources as they are now: what the scan of `scoped` is compared with."""
    return _cut(document, after=False)


def _cut(document: Document, *, after: bool) -> dict[str, Any]:
    plan = document.plan
    references, redactor = References(plan.configuration), Redactor(plan)
    changed = {c.address for c in plan.resource_changes if c.kind not in ("no-op", "read")}
    blocks = {references.block(address) for address in changed}
    near = blocks.union(*(references.neighbours.get(block, set()) for block in blocks))
    kept = [c for c in plan.managed if not c.deposed and references.block(c.address) in near]
    kept = [c for c in kept if (c.change.after if after else c.change.before) is not None]
    back = {c.address: c.previous_address for c in kept if c.is_move and not after}
    names = {c.address: back.get(c.address) or c.address for c in kept}
    entries = [_entry(c, names[c.address], redactor, after=after) for c in kept]
    return {
        "format_version": plan.format_version,
        "terraform_version": plan.terraform_version,
        "planned_values": {"root_module": _tree(entries)},
        "resource_changes": entries,
        "configuration": {"root_module": _configuration(plan.configuration.get("root_module"), "", near)},
    }


def _values(change: Change, redactor: Redactor, *, after: bool) -> Any:
    value, marks = (
        (change.change.after, change.change.after_sensitive)
        if after
        else (change.change.before, change.change.before_sensitive)
    )
    return without_secrets(value, marks, redactor)


def without_secrets(value: Any, marks: Any, redactor: Redactor) -> Any:
    """``value`` in the same form, with texts in place of what is secret. Numbers and yes or no stay what they are."""
    if isinstance(value, dict):
        return {
            key: without_secrets(child, True if hidden_by_name([key], child) else _below(marks, key), redactor)
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(child, _below(marks, index), redactor) for index, child in enumerate(value)]
    if isinstance(value, str):
        inside = parsed(value)
        if marks is not True and not isinstance(inside, str):
            return json.dumps(without_secrets(inside, None, redactor))
        return SENSITIVE if marks is True and value else redactor.clean(value, len(value))
    return 0 if marks is True and isinstance(value, int | float) and not isinstance(value, bool) else value


def _below(marks: Any, step: Any) -> Any:
    if marks is True or marks is None:
        return marks
    if isinstance(marks, dict):
        return marks.get(step)
    return marks[step] if isinstance(marks, list) and isinstance(step, int) and step < len(marks) else None


def _entry(change: Change, address: str, redactor: Redactor, *, after: bool) -> dict[str, Any]:
    values = _values(change, redactor, after=after)
    unknown = change.change.after_unknown if after else {}
    sensitive = change.change.after_sensitive if after else change.change.before_sensitive
    return {
        "address": address,
        "module_address": change.module_address or None,
        "mode": "managed",
        "type": change.type,
        "name": change.name,
        "provider_name": change.provider_name,
        "change": {
            "actions": change.change.actions if after else ["no-op"],
            "before": _values(change, redactor, after=False) if after else values,
            "after": values,
            "after_unknown": unknown or {},
            "after_sensitive": sensitive or {},
        },
    }


def _tree(entries: list[dict[str, Any]]) -> dict[str, Any]:
    root: dict[str, Any] = {"resources": []}
    modules: dict[str, dict[str, Any]] = {}
    for entry in entries:
        home, module = root, entry["module_address"]
        if module:
            if module not in modules:
                modules[module] = {"address": module, "resources": []}
                root.setdefault("child_modules", []).append(modules[module])
            home = modules[module]
        kept = {key: entry[key] for key in ("address", "mode", "type", "name", "provider_name")}
        home["resources"].append({**kept, "schema_version": 0, "values": entry["change"]["after"]})
    return root


def _configuration(module: Any, prefix: str, near: set[str]) -> dict[str, Any]:
    """The configuration of what is kept, with references and without constants."""
    if not isinstance(module, dict):
        return {}
    resources = [
        {**{k: v for k, v in each.items() if k != "expressions"}, "expressions": _no_constants(each.get("expressions"))}
        for each in module.get("resources") or []
        if isinstance(each, dict) and prefix + str(each.get("address")) in near
    ]
    calls = module.get("module_calls") or {}
    inner = {
        name: {
            "source": call.get("source"),
            "module": _configuration(call.get("module"), f"{prefix}module.{name}.", near),
        }
        for name, call in calls.items()
        if isinstance(call, dict)
    }
    return {"resources": resources, **({"module_calls": inner} if inner else {})}


def _no_constants(expressions: Any) -> Any:
    if isinstance(expressions, dict):
        return {key: _no_constants(value) for key, value in expressions.items() if key != "constant_value"}
    return [_no_constants(item) for item in expressions] if isinstance(expressions, list) else expressions

"""A plan reduced to what it does, with every value under a key: two plans do the same where their digests agree.

It is stricter than a snapshot: it compares values before and after, and which are unknown, and replaces no value by a
token. A digest is an HMAC, because a plain digest of a short secret can be guessed. Times and Terraform's order of
relevant attributes are left out, because they differ between two plans of the same change.

Of a resource that is updated, only what the update changes counts: attributes that stay are left out, and of maps,
lists and texts of JSON the leaves that stay. So two changes of one definition that have nothing in common do not make
each other's plan another one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sagefit.paths import home

KEY_VARIABLE = "SAGEFIT_REVIEW_KEY"


def review_key() -> bytes:
    """The key of this team (``$SAGEFIT_REVIEW_KEY``), else one of this machine, made when it is first asked for."""
    given = os.environ.get(KEY_VARIABLE)
    if given:
        return given.encode()
    path = home() / "review.key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(32))
        try:
            path.hardlink_to(partial)  # the first of several processes wins
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    return path.read_text(encoding="utf-8").strip().encode()


def keyed(key: bytes, value: object) -> str:
    """The digest of ``value`` under ``key``, in 64 hex digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Normalised:
    """What a plan does. ``changes`` holds, by address, the actions and a digest for each attribute."""

    changes: dict[str, dict[str, Any]]
    outputs: dict[str, str]
    rest: str

    @classmethod
    def of(cls, plan: dict[str, Any], key: bytes) -> Normalised:
        """Of the JSON of ``terraform show -json``."""
        changes = {
            _address(change): _change(change, key) for change in plan.get("resource_changes", []) if _does(change)
        }
        outputs = {
            name: keyed(key, [change["actions"], _value(change, "before", "after", "after_unknown")])
            for name, change in sorted(plan.get("output_changes", {}).items())
            if change["actions"] != ["no-op"]
        }
        checks = sorted((check["address"]["to_display"], check["status"]) for check in plan.get("checks", []))
        rest = {"complete": plan.get("complete"), "errored": plan.get("errored"), "checks": checks}
        return cls(dict(sorted(changes.items())), outputs, keyed(key, rest))

    def digest(self, key: bytes) -> str:
        """One digest for all of it."""
        return keyed(key, [self.changes, self.outputs, self.rest])

    @property
    def is_empty(self) -> bool:
        """Whether an apply would change nothing. A read of data during the apply changes nothing."""
        return not self.outputs and all(change["actions"] == ["read"] for change in self.changes.values())


def difference(reviewed: Normalised, now: Normalised) -> list[str]:
    """The differences between a new plan and the reviewed one: addresses and names of attributes, never values."""
    told = []
    for address in sorted({*reviewed.changes, *now.changes}):
        before, after = reviewed.changes.get(address), now.changes.get(address)
        if before is None or after is None:
            known = before or after or {}
            word = "is no longer planned" if after is None else "was not in the reviewed plan"
            told.append(f"{address}: {_words(known)} {word}")
        elif before["actions"] != after["actions"]:
            told.append(f"{address}: {_words(before)} was reviewed, {_words(after)} is planned now")
        elif before != after:
            values = {name for part in (before, after) for name in part["attributes"]}
            names = sorted(n for n in values if before["attributes"].get(n) != after["attributes"].get(n))
            told.append(f"{address}: other values of {', '.join(names) or 'its place or reason'}")
    for name in sorted({*reviewed.outputs, *now.outputs}):
        if reviewed.outputs.get(name) != now.outputs.get(name):
            told.append(f"output {name}: another value")
    if reviewed.rest != now.rest:
        told.append("checks, or whether the plan is complete")
    return told


def _does(change: dict[str, Any]) -> bool:
    """A no-op counts where it moves or imports."""
    inner = change["change"]
    return bool(inner["actions"] != ["no-op"] or "previous_address" in change or "importing" in inner)


def _address(change: dict[str, Any]) -> str:
    """Deposed objects share the address of the one that took their place."""
    return str(change["address"]) + (f" (deposed {change['deposed']})" if "deposed" in change else "")


def _change(change: dict[str, Any], key: bytes) -> dict[str, Any]:
    inner = change["change"]
    before, after, unknown = (
        value if isinstance(value := inner.get(part), dict) else {"": value}
        for part in ("before", "after", "after_unknown")
    )
    paths = sorted(json.dumps(path) for path in inner.get("replace_paths", []))
    place = [change.get("previous_address"), change.get("action_reason"), inner.get("importing"), paths]
    update = inner["actions"] == ["update"]
    attributes = {}
    for name in sorted({*before, *after, *unknown} - {""}):
        parts = {"actions": inner["actions"], "before": before.get(name), "after": after.get(name)}
        parts["unknown"] = unknown.get(name)
        if not update or _any(parts["unknown"]) or json.dumps(parts["before"]) != json.dumps(parts["after"]):
            attributes[name] = keyed(key, _value(parts, "before", "after", "unknown"))
    return {
        "actions": inner["actions"],
        "place": keyed(key, [*place, change.get("type"), change.get("provider_name")]),
        "attributes": attributes,
    }


def _value(change: dict[str, Any], *names: str) -> object:
    """What counts of a value: all of it, or of an update the leaves that change."""
    before, after, unknown = (change.get(name) for name in names)
    if change["actions"] != ["update"]:
        return [before, after, unknown]
    if unknown is True:  # what it is now is no part of the change
        return [unknown]
    if _any(unknown):
        return [before, after, unknown]
    was, becomes = dict(_leaves(before, ())), dict(_leaves(after, ()))
    return [
        [path, was.get(path), becomes.get(path)]
        for path in sorted({*was, *becomes})
        if was.get(path) != becomes.get(path)
    ]


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Where each leaf is and what it is, both as JSON: there 1, 1.0 and true are three values."""
    inner = _parsed(value) if isinstance(value, str) else value
    here = (*path, "text of JSON") if inner is not value else path
    if isinstance(inner, dict) and inner:
        for name, each in inner.items():
            yield from _leaves(each, (*here, f"key {name}"))
    elif isinstance(inner, list) and inner:
        for index, each in enumerate(inner):
            yield from _leaves(each, (*here, f"item {index}"))
    else:
        yield json.dumps(here), json.dumps(inner)


def _parsed(text: str) -> object:
    """A text of JSON that is a map or a list, read; any other as it is. A number stays as it is written."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text, object_pairs_hook=_once, parse_float=_Number, parse_int=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):
        return text


class _Number(tuple[str, str]):
    """A number by its digits; as JSON it is a list, which no leaf is."""

    def __new__(cls, text: str) -> _Number:
        return super().__new__(cls, ("number", text))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A map whose keys are all different: of two that are the same, nobody knows which one is read."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return found


def _any(unknown: object) -> bool:
    """Whether any part of a value is unknown."""
    if isinstance(unknown, dict):
        return any(map(_any, unknown.values()))
    return any(map(_any, unknown)) if isinstance(unknown, list) else bool(unknown)


def _words(change: dict[str, Any]) -> str:
    return " then ".join(change.get("actions", []))

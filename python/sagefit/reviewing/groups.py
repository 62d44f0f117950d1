"""Groups of resources that checkov cannot tell apart: one of each is scanned, and its verdicts hold for all.

checkov's time grows with the square of the plan, and a large plan is mostly copies. Two resources are alike when
everything that checkov gets about them is equal: type, actions, every value, what is unknown and what is sensitive, and
what the configuration refers to. Only a resource's own name, key and number are ignored, in name attributes and in
ARNs. No check depends on them, with two exceptions: checks compare the names of buckets, so these count as connections;
and checks look for the names of Sagefit's own resources, so these are not ignored.

Checks also follow connections. So the neighbours of alike resources must be alike too, and their neighbours, and so on.
The scanned plan keeps, for every resource in it, a neighbour of each kind that it had. So a check can find in the
smaller plan whatever it can find along connections in the whole plan. checkov connects a reference to the instance with
the same key, to the first instance, or to every instance, depending on how it is written; all three count as
connections here. In doubt, two resources are not alike, and both are scanned.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sagefit.documents import parsed
from sagefit.reviewing.references import References

# Attributes of AWS resources themselves (not of blocks in them) that only say which one it is, or hash its content.
_NAMES = frozenset({
    "alarm_name", "arn", "bucket", "bucket_domain_name", "bucket_regional_domain_name", "etag", "function_name", "id",
    "key", "name", "role", "source_code_hash", "source_hash",
})  # fmt: skip
_NUMBER = re.compile(r"\d+")
_REFERENCE = re.compile(r"^((?:data\.)?[a-z]\w*)\.[\w-]+(?:\[[^\]]*\])?")
_OWN_WORDS = ("var", "local", "each", "count", "path", "self", "terraform", "module")


@dataclass(frozen=True)
class Grouped:
    """A plan with one resource of each group and the neighbours that it needs, and the members of each group.

    ``members`` maps the address of the scanned resource to all resources that get its verdicts, itself included.
    Resources of ``plan`` that are not a key of it are there as neighbours only.
    """

    plan: dict[str, Any]
    members: Mapping[str, tuple[str, ...]]


def grouped(plan: dict[str, Any]) -> Grouped:
    """Group the resources of ``plan``, which `sagefit.reviewing.policies.scoped` has reduced."""
    entries = {entry["address"]: entry for entry in plan["resource_changes"]}
    graph = _Graph(entries, References(plan["configuration"]))
    groups: dict[int, list[str]] = defaultdict(list)
    for address, kind in graph.kinds.items():
        groups[kind].append(address)
    members = {group[0]: tuple(group) for group in groups.values()}
    return Grouped(_only(plan, graph.closed(members)), members)


class _Graph:
    """The neighbours of each resource, and its kind: resources of one kind are alike."""

    def __init__(self, entries: Mapping[str, dict[str, Any]], references: References) -> None:
        self._crowds = _crowds(entries, references)
        self._next: dict[str, list[tuple[str, str]]] = {}
        self._same: dict[str, list[tuple[str, str]]] = {}
        self._firsts = self._connect(entries, references)
        self.kinds = self._refined(entries, references)

    def _connect(self, entries: Iterable[str], references: References) -> dict[str, tuple[str, str]]:
        """Find neighbours: whole blocks, and instances with the same key. Gives the first of each block and module."""
        by_keys = {(references.block(a), _keys(a)): a for a in entries}
        buckets = {a: crowd for crowd, them in self._crowds.items() if crowd.startswith("=") for a in them}
        first_of: dict[str, str] = {}
        firsts = {}
        for address in entries:
            block, home = references.block(address), _without_key(address)
            firsts[address] = (first_of.setdefault(f"*{block}", address), first_of.setdefault(home, address))
            out = set(references.of(address))
            near = sorted(references.neighbours.get(block, ()))
            crowds = [(">" if other in out else "<", other) for other in near if other in self._crowds]
            self._same[address] = [
                (sign, found) for sign, other in crowds if (found := by_keys.get((other, _keys(address))))
            ]
            self._next[address] = [*crowds, *([("=", buckets[address])] if address in buckets else [])]
        return firsts

    def _refined(self, entries: Mapping[str, dict[str, Any]], references: References) -> dict[str, int]:
        """Kinds by the values of each resource, split by the kinds of its neighbours until no kind splits any more."""
        kinds = _numbered(
            {a: (_signature(e, references), *(first == a for first in self._firsts[a])) for a, e in entries.items()}
        )
        count = 0
        while count < (count := len(set(kinds.values()))):
            crowd = {name: frozenset(kinds[a] for a in them) for name, them in self._crowds.items()}
            kinds = _numbered(
                {
                    a: (
                        kind,
                        frozenset((sign, crowd[name]) for sign, name in self._next[a]),
                        frozenset((sign, kinds[other]) for sign, other in self._same[a]),
                    )
                    for a, kind in kinds.items()
                }
            )
        return kinds

    def closed(self, chosen: Iterable[str]) -> set[str]:
        """``chosen`` and the neighbours they need: one of each kind, and the first ones of each block."""
        kept: set[str] = set()
        there: set[tuple[str, int]] = set()  # kinds that are kept for a crowd already
        crowds_of: dict[str, list[str]] = defaultdict(list)
        for name, them in self._crowds.items():
            for address in them:
                crowds_of[address].append(name)
        left, seen = list(chosen), set()
        while left:
            address = left.pop()
            if address in kept:
                continue
            kept.add(address)
            there |= {(name, self.kinds[address]) for name in crowds_of[address]}
            left += [other for _, other in self._same[address]]
            left += self._firsts[address]
            for _, name in self._next[address]:
                if name not in seen:
                    seen.add(name)
                    for other in self._crowds[name]:
                        if (name, self.kinds[other]) not in there:
                            there.add((name, self.kinds[other]))
                            left.append(other)
        return kept


def _crowds(entries: Mapping[str, dict[str, Any]], references: References) -> dict[str, list[str]]:
    """Instances by block, and by bucket name up to its last dot: checkov finds a bucket's policies by that part."""
    found: dict[str, list[str]] = defaultdict(list)
    for address, entry in entries.items():
        found[references.block(address)].append(address)
        name = (entry["change"]["after"] or {}).get("bucket")
        if isinstance(name, str):
            found["=" + name.rsplit(".", 1)[0]].append(address)
    return dict(found)


def _numbered(kinds: Mapping[str, Any]) -> dict[str, int]:
    numbers: dict[Any, int] = {}
    return {address: numbers.setdefault(kind, len(numbers)) for address, kind in kinds.items()}


def _keys(address: str) -> tuple[str, ...]:
    return tuple(References.keys(address))


def _without_key(address: str) -> str:
    """The block within its instance of the module."""
    last = References.keys(address)[-1:] if address.endswith("]") else []
    return address.removesuffix(last[0]) if last else address


def _signature(entry: dict[str, Any], references: References) -> str:
    """All that checkov gets about a resource, without its own name, key and number."""
    change = entry["change"]
    own = _Own(entry)
    block = references.block(entry["address"])
    return json.dumps(
        [
            entry["type"],
            entry["provider_name"],
            block.rpartition(f"{entry['type']}.")[0],
            {key: value for key, value in change.items() if key not in ("before", "after")},
            own.resource(change["before"]),
            own.resource(change["after"]),
            _targets(references.expressions(block)),
        ],
        sort_keys=True,
    )


class _Own:
    """The own names of one resource, and its values without them."""

    def __init__(self, entry: dict[str, Any]) -> None:
        states = [state for state in (entry["change"]["before"], entry["change"]["after"]) if isinstance(state, dict)]
        self._aws = entry["provider_name"].endswith("/aws")  # elsewhere a name may be a setting, as in azurerm
        names = {v for state in states for k, v in state.items() if self._names_it(k, v)}
        keys = {key.strip('[]"') for key in References.keys(entry["address"])}
        tails = {name.split(":", 5)[-1] if name.startswith("arn:") else name for name in names | keys | {entry["name"]}}
        self._names = sorted((t for t in tails if len(t) > 2 and "*" not in t), key=lambda t: (-len(t), t))
        self._numbers = {number for text in tails for number in _NUMBER.findall(text)}

    def _names_it(self, key: str, value: Any) -> bool:
        known = self._aws and key in _NAMES and isinstance(value, str)
        # Names of AWS's own policies and of Sagefit's own alarms, topics and jobs are what checks look for.
        return known and bool(value) and not value.startswith("arn:aws:iam::aws:") and "sagefit" not in value

    def resource(self, values: Any) -> Any:
        """The attributes of a resource."""
        if not isinstance(values, dict):
            return values
        return {key: self._attribute(key, value) for key, value in values.items()}

    def _attribute(self, key: str, value: Any) -> Any:
        if self._names_it(key, value):
            return ["a name"]
        if self._aws and key in ("tags", "tags_all") and isinstance(value, dict) and isinstance(value.get("Name"), str):
            return self._value(value | {"Name": "a name"})
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._value(child) for key, child in value.items()}
        if isinstance(value, list):
            return [self._value(child) for child in value]
        if not isinstance(value, str):
            return value
        inside = parsed(value)
        return self._arn(value) if isinstance(inside, str) else ["JSON", self._value(inside)]

    def _arn(self, text: str) -> str:
        """An ARN without own names and numbers, except the account's; and any other text as it is."""
        parts = text.split(":", 5)
        if len(parts) < 6 or parts[0] != "arn" or parts[4] == "aws":
            return text
        tail = parts[5]
        for name in self._names:
            tail = tail.replace(name, "<own>")
        tail = _NUMBER.sub(lambda found: "<own>" if found[0] in self._numbers else found[0], tail)
        return ":".join([*parts[:5], tail])


def _targets(expressions: Any) -> Any:
    """References reduced to their type: the resources that they name are compared as neighbours."""
    if isinstance(expressions, dict):
        return {key: _targets(value) for key, value in expressions.items()}
    if isinstance(expressions, list):
        return [_targets(item) for item in expressions]
    if not isinstance(expressions, str) or expressions.split(".")[0] in _OWN_WORDS:
        return expressions
    return _REFERENCE.sub(r"\1.*", expressions)


def _only(plan: dict[str, Any], kept: set[str]) -> dict[str, Any]:
    """``plan`` with the resources of ``kept``, and the configuration of their blocks."""
    blocks = {References.block(address) for address in kept}
    return plan | {
        "resource_changes": [entry for entry in plan["resource_changes"] if entry["address"] in kept],
        "planned_values": {"root_module": _resources(plan["planned_values"]["root_module"], kept)},
        "configuration": {"root_module": _blocks(plan["configuration"]["root_module"], "", blocks)},
    }


def _resources(module: dict[str, Any], kept: set[str]) -> dict[str, Any]:
    inner = [_resources(child, kept) for child in module.get("child_modules", [])]
    return module | {
        "resources": [each for each in module["resources"] if each["address"] in kept],
        **({"child_modules": [child for child in inner if child["resources"]]} if inner else {}),
    }


def _blocks(module: dict[str, Any], prefix: str, blocks: set[str]) -> dict[str, Any]:
    calls = {
        name: call | {"module": _blocks(call["module"], f"{prefix}module.{name}.", blocks)}
        for name, call in module.get("module_calls", {}).items()
    }
    resources = [each for each in module.get("resources", []) if prefix + each["address"] in blocks]
    return module | {"resources": resources, **({"module_calls": calls} if calls else {})}

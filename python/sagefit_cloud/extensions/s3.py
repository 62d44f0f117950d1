"""S3: conditions of bucket policies, listing while others delete, and contents that stay out of memory.

What moto 5.2 does, and what is done here in its place:

- It applies a statement whatever its condition says, so that a policy which refuses plain HTTP refuses everything.
- It lists keys from a copy, but looks their versions up in the original, where they may be gone by then.
- ``S3Backend.list_object_versions`` copies each version of the whole bucket with its content, and
  ``BaseModel.__new__`` keeps a reference to each copy for ever. Terraform asks for it once for each object that it
  deletes. Here a copy has no content.
- ``FakeMultipart.complete`` joins the parts in memory, up to three times, and ``S3Response.get_object`` reads an
  object as a whole, for each range of it again. Here parts are joined in a file, and an object is sent in pieces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flask import has_request_context, request
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3 import models
from moto.s3.exceptions import EntityTooSmall, InvalidPart, MalformedXML
from moto.s3.models import FakeBucket, FakeKey, FakeMultipart, MultipartChecksumBuilder
from moto.s3.responses import S3Response
from moto.s3.utils import _VersionedKeyStore
from moto.settings import S3_UPLOAD_PART_MIN_SIZE

from sagefit_cloud.contents import CHUNK, Content, Piece

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


_Checksum = tuple[str, str, int]  # its type, its value, the number of its parts
_SENDING: ContextVar[bool] = ContextVar("sending", default=False)
_get_object = S3Response.get_object


def _send_object(response: S3Response) -> Any:
    """The answer to GetObject, whose body is read while it is sent."""
    token = _SENDING.set(True)
    try:
        return _get_object(response)
    finally:
        _SENDING.reset(token)


def _value(key: Any) -> bytes | Piece:
    """What an object contains; of a large one that is to be sent, something that reads it."""
    content: Content = key._value_buffer
    if _SENDING.get() and len(content) > CHUNK:
        return content.piece(0, len(content))
    with key.lock:
        content.seek(0)
        return content.read()


def _listed(key: Any, _memo: dict[int, Any]) -> Any:
    """A copy of an object for a listing, without its content; made so that moto does not keep it."""
    copy = object.__new__(FakeKey)
    copy.__dict__.update(key.__dict__, _etag=key.etag.strip('"'), _value_buffer=None, multipart=None, disposed=True)
    return copy


def _complete(
    upload: FakeMultipart, body: Iterator[tuple[int, str]]
) -> tuple[Content, str, tuple[str, str, int] | None]:
    """The content of all parts, which are empty afterwards, its ETag, and its checksum where it is made of theirs."""
    parts: list[FakeKey] = []
    for number, etag in body:
        part = upload.parts.get(number)
        if part is None or part.etag.strip('"') != etag.strip('"'):
            raise InvalidPart
        if parts and parts[-1].size < S3_UPLOAD_PART_MIN_SIZE:
            raise EntityTooSmall
        parts.append(part)
    if not parts:
        raise MalformedXML
    etags = b"".join(bytes.fromhex(part.etag.strip('"')) for part in parts)
    asked = upload.metadata
    checksum = MultipartChecksumBuilder(asked.get("x-amz-checksum-algorithm"), asked.get("x-amz-checksum-type"))
    of_parts = checksum.checksum_type == "COMPOSITE"
    first: Any = parts[0]
    whole = Content(first._value_buffer.folder)
    for part in parts:
        value = part.value
        whole.write(value)
        if of_parts:
            checksum.addPart(value)
        part.dispose()
    etag = f"{hashlib.md5(etags, usedforsecurity=False).hexdigest()}-{len(parts)}"
    return whole, etag, checksum.build() if of_parts else None


def install(contents: Path) -> None:
    """Put all this in place of moto's; ``contents`` is an empty folder for the contents of objects."""
    bucket: Any = FakeBucket
    bucket.get_permission = _get_permission
    store: Any = _VersionedKeyStore
    store.lists = store.iterlists = _lists
    store.items = store.iteritems = _items
    store.values = store.itervalues = _values
    key: Any = FakeKey
    key.value = property(_value, key.value.fset)
    key.__deepcopy__ = _listed
    upload: Any = FakeMultipart
    upload.complete = _complete
    response: Any = S3Response
    response.get_object = _send_object
    module: Any = models
    module.tempfile = SimpleNamespace(SpooledTemporaryFile=lambda *_, **__: Content(contents))

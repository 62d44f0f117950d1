"""Reads a request off the wire: which operation of which service it is, and its parameters as the model names them."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any
from urllib.parse import parse_qs

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from moto.utilities.utils import get_partition

from sagefit_cloud.rules.table import Place

Environ = dict[str, Any]
NOT_SAID = "unknown"
_BOTO_NAMES = {"awslambda": "lambda", "servicequotas": "service-quotas"}
_TARGET, _MATCH = "HTTP_X_AMZ_TARGET", "sagefit.match"
_LARGEST = 16 * 1024**2  # bytes of a body that was compressed


def boto_name(service: str) -> str:
    """What botocore calls a service of moto."""
    return _BOTO_NAMES.get(service, service)


def signed_for(environ: Environ) -> str:
    """The service a request was signed for; that of a URL signed beforehand is not said here."""
    parts = str(environ.get("HTTP_AUTHORIZATION", "")).split(",")[0].split("/")
    return parts[3] if len(parts) == 5 else NOT_SAID


def place_of(environ: Environ) -> Place:
    """Where a request is asked. The Region of a URL that was signed beforehand is not said here."""
    parts = str(environ.get("HTTP_AUTHORIZATION", "")).split(",")[0].split("/")
    region = parts[2] if len(parts) == 5 else NOT_SAID
    return Place(DEFAULT_ACCOUNT_ID, region, get_partition(region))


def action_of(environ: Environ, service: str) -> str:
    """The name of the API call, wherever its protocol puts it."""
    if service != "s3" and (named := _named(environ)):
        return named
    try:
        return str(_match(environ, boto_name(service))[0])
    except Exception:  # a path no operation has, or a service without a model: the method has to do
        return str(environ.get("REQUEST_METHOD"))


def _named(environ: Environ) -> str:
    """The API call that a request names in words; empty where its path tells.

    S3 reads no such names, so they would stand for another call than the one that is made.
    """
    target = environ.get(_TARGET)
    if target:
        return str(target).rsplit(".", 1)[-1]
    path = str(environ.get("PATH_INFO", ""))
    if path.startswith("/service/") and "/operation/" in path:  # Smithy RPC v2
        return path.rsplit("/", 1)[-1]
    for source in (_form_of(environ), str(environ.get("QUERY_STRING", ""))):
        if "Action=" in source:
            return parse_qs(source).get("Action", ["unknown"])[0]
    return ""


def speaks_json(environ: Environ, service: str) -> bool:
    """Whether the sender of a request reads JSON."""
    if environ.get(_TARGET):
        return True
    try:
        return "json" in str(get_service_model(boto_name(service)).protocol)
    except Exception:  # no model of that name
        return "json" in str(environ.get("CONTENT_TYPE", ""))


def body_of(environ: Environ) -> bytes:
    """The body of a request, which others may read after this."""
    stream = environ["wsgi.input"]
    # moto's dispatcher may have read the body already to find the service; it then leaves a copy that can be rewound.
    if not stream.seekable():
        stream = environ["wsgi.input"] = io.BytesIO(stream.read(int(environ.get("CONTENT_LENGTH") or 0)))
    stream.seek(0)
    body: bytes = stream.read()
    stream.seek(0)
    return body


def _plain(environ: Environ) -> bytes:
    """The body of a request, unpacked where it is compressed. Raises ValueError where it cannot be unpacked."""
    packed = environ.get("HTTP_CONTENT_ENCODING")
    if environ.get("HTTP_TRANSFER_ENCODING") or packed not in (None, "", "identity", "gzip"):
        raise ValueError(f"a body in {packed or 'chunks'}")
    body = body_of(environ)
    if packed != "gzip":
        return body
    unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        plain = unpacking.decompress(body, _LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacking.eof:
        raise ValueError("a body that is cut, or too large")
    return plain


def parameters_of(environ: Environ, service: str, action: str) -> dict[str, Any] | None:
    """What an operation is asked with; None where it cannot be told.

    That is so for operations that botocore has no model of, for bodies that cannot be unpacked, and for CBOR, which
    moto does not speak. The content of an object of S3 is left aside: it may be large, and is read once, by moto. A
    member that the model does not name is kept where the protocol is JSON alone.
    """
    name = boto_name(service)
    try:
        model = get_service_model(name)
        operation = model.operation_model(action)
        protocol = determine_request_protocol(model, environ.get("CONTENT_TYPE"))
        parser = PROTOCOL_PARSERS[protocol]
        body = b"" if operation.has_streaming_input else _plain(environ)
        if protocol == "json":
            found: Any = json.loads(body or b"{}")
            return found if isinstance(found, dict) else None
        in_path = protocol.startswith("rest")
        length = {} if in_path else {"CONTENT_LENGTH": str(len(body))}  # it is read as a form
        request = Request({**environ, **length, "wsgi.input": io.BytesIO(body)})
        parsed: dict[str, Any] = parser(operation).parse(
            {
                "method": request.method,
                "values": request.args if in_path else request.values,
                "headers": request.headers,
                "body": body,
                "url_path": request.path,
                "url_params": _match(environ, name)[1] if in_path else {},
            }
        )
        return parsed
    except Exception:  # no such service, operation or protocol, or a body that is none: moto has an answer to it
        return None


def _match(environ: Environ, service: str) -> tuple[str, dict[str, Any]]:
    """The operation that a path is of, and what it names. Looked for once: it takes longer than all else here."""
    if _MATCH not in environ:
        operation, named = get_service_router(service).match(Request(environ.copy()))
        environ[_MATCH] = str(operation.name), named
    found: tuple[str, dict[str, Any]] = environ[_MATCH]
    return found


def _form_of(environ: Environ) -> str:
    """The form that a request is; empty for one that is none, or that cannot be unpacked."""
    if not str(environ.get("CONTENT_TYPE", "")).startswith("application/x-www-form-urlencoded"):
        return ""
    try:
        return _plain(environ).decode(errors="replace")
    except ValueError:
        return ""

"""Reads a request off the wire: which operation of which service it is, and its parameters as the model names them."""

from __future__ import annotations

import io
import json
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
_TARGET, _CBOR = "HTTP_X_AMZ_TARGET", "application/cbor"
_UNREAD = ("s3",)  # whose bodies may be large; its operations have few parameters, and moto checks them


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
    target = environ.get(_TARGET)
    if target:
        return str(target).rsplit(".", 1)[-1]
    path = str(environ.get("PATH_INFO", ""))
    if path.startswith("/service/") and "/operation/" in path:  # Smithy RPC v2
        return path.rsplit("/", 1)[-1]
    form = body_of(environ).decode(errors="replace") if _is_form(environ) else ""
    for source in (form, str(environ.get("QUERY_STRING", ""))):
        if "Action=" in source:
            return parse_qs(source).get("Action", ["unknown"])[0]
    try:
        operation, _ = get_service_router(boto_name(service)).match(Request(environ.copy()))
    except Exception:  # a path no operation has, or a service without a model: the method has to do
        return str(environ.get("REQUEST_METHOD"))
    return str(operation.name)


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


def parameters_of(environ: Environ, service: str, action: str) -> dict[str, Any] | None:
    """What an operation is asked with; None where it cannot be told.

    That is so for S3, for a body that is compressed, and for operations that botocore has no model of. A member that
    the model does not name is kept where the protocol is JSON alone.
    """
    name = boto_name(service)
    if name in _UNREAD or environ.get("HTTP_CONTENT_ENCODING"):
        return None
    try:
        model = get_service_model(name)
        operation = model.operation_model(action)
        if environ.get("CONTENT_TYPE") == _CBOR:
            return None
        protocol = determine_request_protocol(model, environ.get("CONTENT_TYPE"))
        body = body_of(environ)
        if protocol == "json":
            found: Any = json.loads(body or b"{}")
            return found if isinstance(found, dict) else None
        request = Request({**environ, "wsgi.input": io.BytesIO(body)})
        in_path = get_service_router(name).match(request)[1] if protocol.startswith("rest") else {}
        parsed: dict[str, Any] = PROTOCOL_PARSERS[protocol](operation).parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": body,
                "url_path": request.path,
                "url_params": in_path,
            }
        )
        return parsed
    except Exception:  # no such service, operation or protocol, or a body that is none: moto has an answer to it
        return None


def _is_form(environ: Environ) -> bool:
    return str(environ.get("CONTENT_TYPE", "")).startswith("application/x-www-form-urlencoded")

"""Every request to the embedded cloud passes here: it is let in or refused, answered by moto or an extension, and
written down.

What moto cannot do is answered with a clear refusal. It would answer 500, which AWS clients take for a hiccup and
try again for minutes.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any
from xml.sax.saxutils import escape

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from sagefit.cloud.calls import CallLog, kind_of
from sagefit.cloud.faults import Faults
from sagefit.cloud.record import STATUS_PATH
from sagefit_cloud import authorization, role_calls, signing_time, throttling, validation
from sagefit_cloud.clients import INTERNAL_AGENT
from sagefit_cloud.door import Door, Refusal, key_of
from sagefit_cloud.replies import Replies, Reply
from sagefit_cloud.rules import Place, Said
from sagefit_cloud.wire import NOT_SAID, action_of, boto_name, parameters_of, place_of, signed_for, speaks_json

_LOG = logging.getLogger(__name__)
_STATUS_LINES = {
    200: "200 OK",
    400: "400 Bad Request",
    403: "403 Forbidden",
    409: "409 Conflict",
    503: "503 Service Unavailable",
}
_DENIED = ("AccessDenied", "AccessDeniedException")
# What AWS calls these errors, in XML and in JSON: "Common errors" in the API reference of each service.
_CODES = {
    "address": _DENIED,
    "page": _DENIED,
    "control": _DENIED,
    "unsigned": ("MissingAuthenticationToken", "MissingAuthenticationTokenException"),
    "key": ("InvalidClientTokenId", "UnrecognizedClientException"),
    "s3-key": ("InvalidAccessKeyId", "InvalidAccessKeyId"),
}
_UPLOADS = 3  # S3 requests at once whose bodies moto holds in memory, several times; Terraform sends fifty of 5 MB
_HOSTS = 256  # names of services in regions that are remembered
_UNREAD = 16 * 1024**2  # bytes of a refused request that are taken in, so that its sender comes to read the answer
_NOT_SAID = ("access-control-", "date")  # what would let a web page read an answer; the time is added here
_UNSUPPORTED = "UnsupportedOperation"
_FAILURE = "EmbeddedCloudFailure"
StartResponse = Callable[..., Any]


class _UnknownError(Exception):
    """A service that moto has nothing for."""


class Gateway(DomainDispatcherApplication):
    """moto's dispatcher with a call log, clear refusals, and a private status page."""

    def __init__(
        self, calls: CallLog, door: Door, status: Callable[[], dict[str, object]], faults: Faults | None = None
    ) -> None:
        super().__init__(create_backend_app)
        self._backend_of = lru_cache(_HOSTS)(super().get_backend_for_host)
        self._calls = calls
        self._replies = Replies()
        self._door = door
        self._status = status
        self._faults = faults or Faults()
        self._uploads = threading.BoundedSemaphore(_UPLOADS)

    def get_backend_for_host(self, host: str | None) -> Any:
        """The part of moto that answers for a host name.

        moto looks through its folder and its patterns anew, three times for each request: half of what most cost.
        """
        return self._backend_of(host)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        if refusal := self._door.refusal(environ):
            return _turn_away(environ, start_response, refusal)
        if environ.get("PATH_INFO") == STATUS_PATH:
            return self._answer_status(start_response)
        began = datetime.now(timezone.utc)
        service, action = signed_for(environ), str(environ.get("REQUEST_METHOD"))
        answer, skew = _Answer(), 0.0
        body: Iterable[bytes]
        try:
            if self._is_unknown(environ):
                action = action_of(environ, service)
                raise _UnknownError
            application = self.get_application(environ)
            service = getattr(application, "service", service)
            action = action_of(environ, service)
            request, place = parameters_of(environ, service, action), place_of(environ)
            skew = signing_time.skew_of(self._faults, environ, service, action)
            if busy := throttling.refusal(self._faults, environ, service, action):
                body = answer.say_no(environ, service, busy)
            elif late := signing_time.refusal(environ, service, skew):
                body = answer.say_no(environ, service, late)
            elif why := self._denial(environ, service, action, request, place):
                body = answer.deny(environ, service, why)
            elif request is not None and (wrong := validation.refusal(service, action, request, place)):
                body = answer.say_no(environ, service, wrong)
            elif kind_of(action, environ["REQUEST_METHOD"]) == "write":
                with self._uploads if service == "s3" else nullcontext():
                    body = [self._change(environ, application, answer)]
            elif service == "s3":
                body = application(environ, answer.start)  # may be large, so it is not read here
            else:
                body = [b"".join(application(environ, answer.start))]
            if answer.status == 404 and "text/html" in answer.content_type and service not in ("s3", "moto_api"):
                body = answer.refuse(environ, service, action, "is not part of the embedded cloud")
        except (_UnknownError, NotImplementedError):  # the second is what moto raises for actions that it lacks
            body = answer.refuse(environ, service, action, "is not part of the embedded cloud")
        except Exception as error:
            _LOG.exception("%s:%s failed inside the embedded cloud", service, action)
            problem = f"failed inside the embedded cloud: {type(error).__name__}: {error}"
            body = answer.refuse(environ, service, action, problem, code=_FAILURE)
        finally:
            if INTERNAL_AGENT not in environ.get("HTTP_USER_AGENT", "") and service != "moto_api":
                name, method = boto_name(service), environ["REQUEST_METHOD"]
                self._calls.add(began, name, action, method, answer.status)
        said = [each for each in answer.headers if not each[0].lower().startswith(_NOT_SAID)]
        start_response(answer.line, [*said, signing_time.date(skew)])
        return body

    def _denial(
        self, environ: dict[str, Any], service: str, action: str, request: dict[str, Any] | None, place: Place
    ) -> str:
        """Why a request is more than whoever sent it may do; else empty. The owner may do everything."""
        key = key_of(environ) or ""
        owns = key == self._door.owner.id
        if (service, action) == ("sts", "AssumeRole") and request and "RoleArn" in request:
            caller = None if owns else authorization.caller_of(key, self._door.roles.role(key), authorization.SAGEMAKER)
            return authorization.denial_of_taking(request, caller)
        if owns:
            return ""
        signed = signed_for(environ)
        calls = role_calls.calls_of(environ, service if signed == NOT_SAID else signed, action, place, request)
        role = self._door.roles.role(key)
        return (
            authorization.denial(role, calls, authorization.SAGEMAKER)
            if role
            else authorization.denial_of_key(key, calls)
        )

    def _change(self, environ: dict[str, Any], application: Any, answer: _Answer) -> bytes:
        """Answer a request that changes something, or say once more what an earlier try of it was answered."""
        if reply := self._replies.again(environ):
            answer.line, answer.headers, body = reply
            return body
        body = b"".join(application(environ, answer.start))
        if answer.status < 300:
            self._replies.keep(environ, Reply(answer.line, answer.headers, body))
        return body

    def _is_unknown(self, environ: dict[str, Any]) -> bool:
        """Whether moto has nothing for the service at all; it would fail with an error of its own."""
        host = self.infer_service_region_host(environ, str(environ.get("PATH_INFO", "")))
        return host is not None and self.get_backend_for_host(host) is None

    def _answer_status(self, start_response: StartResponse) -> list[bytes]:
        body = json.dumps(self._status() | {"calls": self._calls.count}).encode()
        start_response(_STATUS_LINES[200], [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


class _Answer:
    """What an application says through ``start_response``."""

    line = "500 Internal Server Error"
    headers: list[tuple[str, str]]

    def start(self, line: str, headers: list[tuple[str, str]], _exc_info: object = None) -> Callable[[bytes], object]:
        self.line, self.headers = line, headers
        return lambda _data: None

    def refuse(
        self, environ: dict[str, Any], service: str, action: str, why: str, *, code: str = _UNSUPPORTED
    ) -> list[bytes]:
        """Say in the service's own protocol why a request is not granted."""
        return self.say_no(environ, service, Said(f"{boto_name(service)}:{action} {why}", code))

    def say_no(self, environ: dict[str, Any], service: str, said: Said) -> list[bytes]:
        """Say in the service's own protocol that a request is wrong."""
        self.line = _STATUS_LINES[said.status]
        self.headers, body = _refusal(environ, service, said.message, said.code)
        _take_in(environ)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    def deny(self, environ: dict[str, Any], service: str, why: str) -> list[bytes]:
        """Say in the service's own protocol that the role may not."""
        self.line = _STATUS_LINES[403]
        self.headers, body = _refusal(environ, service, why, *_DENIED)
        _take_in(environ)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    @property
    def status(self) -> int:
        return int(self.line.split(" ", 1)[0])

    @property
    def content_type(self) -> str:
        return next((value for name, value in self.headers if name.lower() == "content-type"), "")


def _turn_away(environ: dict[str, Any], start_response: StartResponse, refusal: Refusal) -> list[bytes]:
    """Answer a request that is not let in."""
    service = signed_for(environ)
    codes = _CODES["s3-key" if (service, refusal.kind) == ("s3", "key") else refusal.kind]
    headers, body = _refusal(environ, service, refusal.why, *codes)
    _take_in(environ)
    start_response(_STATUS_LINES[403], [*headers, ("Connection", "close")])
    return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


def _take_in(environ: dict[str, Any]) -> None:
    """Read what a refused request sends along."""
    length = str(environ.get("CONTENT_LENGTH") or 0)
    left = min(int(length), _UNREAD) if length.isascii() and length.isdigit() else 0
    while left > 0 and (chunk := environ["wsgi.input"].read(min(left, 2**16))):
        left -= len(chunk)


def _refusal(
    environ: dict[str, Any], service: str, problem: str, code: str, json_code: str = ""
) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of an error in the protocol of a service; an error may have another name in JSON."""
    name = boto_name(service)
    message = problem[:1000]
    _LOG.warning("refused: %s", message)
    if speaks_json(environ, service):
        code = json_code or code
        body = json.dumps({"__type": code, "message": message, "Message": message})
        headers = [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-ErrorType", code)]
    else:
        error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        body = error if name == "s3" else f"<ErrorResponse>{error}<RequestId>-</RequestId></ErrorResponse>"
        headers = [("Content-Type", "text/xml")]
    encoded = body.encode()
    headers += [("Content-Length", str(len(encoded))), ("x-amzn-RequestId", str(uuid.uuid4()))]
    return headers, encoded

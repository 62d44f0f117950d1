"""Requests that the faults file wants throttled: refused in the words of their service, so that clients try again."""

from __future__ import annotations

import hashlib
from typing import Any

from sagefit.cloud.faults import Faults
from sagefit_cloud.clients import INTERNAL_AGENT, STATES_AGENT
from sagefit_cloud.rules import Said
from sagefit_cloud.wire import body_of, boto_name, speaks_json

INVOCATION = "HTTP_AMZ_SDK_INVOCATION_ID"
"""The header that all tries of one request have alike, of every AWS SDK."""
# "Error responses" in the API reference of each service, and "Common errors" of the others.
_OWN = {
    "s3": Said("Please reduce your request rate.", "SlowDown", 503),
    "ec2": Said("Request limit exceeded.", "RequestLimitExceeded", 503),
    "service-quotas": Said("Rate exceeded", "TooManyRequestsException", 400),
}


def refusal(faults: Faults, environ: dict[str, Any], service: str, action: str) -> Said | None:
    """What is answered to this try of a request; None where it is not throttled. What AWS does itself never is."""
    if INTERNAL_AGENT in environ.get("HTTP_USER_AGENT", "") or service == "moto_api":
        return None
    name = boto_name(service)
    if not faults.throttles(f"{name}:{action}", _request(environ)):
        return None
    return _OWN.get(name) or Said(
        "Rate exceeded", "ThrottlingException" if speaks_json(environ, service) else "Throttling"
    )


def _request(environ: dict[str, Any]) -> str:
    """The same for all tries of a request. A state machine's are other invocations with the same content."""
    agent = environ.get("HTTP_USER_AGENT", "")
    if (invocation := environ.get(INVOCATION)) and STATES_AGENT not in agent:
        return str(invocation)
    named = (environ.get(each, "") for each in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_X_AMZ_TARGET"))
    return hashlib.sha256("\n".join(named).encode() + b"\n" + body_of(environ)).hexdigest()

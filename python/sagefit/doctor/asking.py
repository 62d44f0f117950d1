"""Asking AWS in a few seconds, where an answer may be a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sagefit.doctor.finding import Finding

# A place that does not answer is a finding; the defaults of the client would wait for minutes.
_QUICK = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3})
_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "403")


def client(service: str, region: str | None = None) -> Any:
    """A client that gives up soon; of the region of the environment, or of another one."""
    make: Any = boto3.client
    return make(service, region_name=region, config=_QUICK)


def code_of(error: ClientError) -> str:
    """The code of an answer, such as ``RepositoryNotFoundException``."""
    return str(error.response.get("Error", {}).get("Code", ""))


def guarded(check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of one look; where AWS does not answer it, a last one that says so."""
    try:
        yield from findings
    except ClientError as error:
        if code_of(error) in _DENIED:
            operation = error.operation_name
            yield Finding(check, "unknown", f"not asked: you may not call {operation}", f"allow {operation} to ask")
        else:
            yield Finding(check, "unknown", f"not asked: {one_line(error)}", "try again")
    except BotoCoreError as error:
        yield Finding(check, "unknown", f"not asked: {one_line(error)}", "try again")


def one_line(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())

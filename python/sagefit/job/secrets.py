"""What looks like a credential, which has no place in a job file."""

from __future__ import annotations

import re

from sagefit.job.problem import Problem
from sagefit.job.source import Key

_SECRET_VALUE = re.compile(
    r"\b(AKIA|ASIA)[0-9A-Z]{16}\b|-----BEGIN [A-Z ]*PRIVATE KEY|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{16,}|\bxox[abprs]-|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\."
    r"|\bglpat-[A-Za-z0-9_-]{16,}|://[^/\s:@]+:[^/\s:@]+@"
)
_SECRET_NAME = {"password", "passwd", "secret", "token", "apikey", "credential", "credentials"}


def secret(field: Key) -> Problem:
    """The problem of a field whose value looks like a secret."""
    return Problem(
        field,
        "the value looks like a secret, and job definitions, plans and logs are readable",
        "keep it in Secrets Manager and let the script read it with the execution role",
    )


def looks_secret(name: str, value: str) -> bool:
    """Whether a value is shaped like a credential, or is a long word under a name that says so.

    References (ARNs, paths, ``s3://``) and numbers are not secrets.
    """
    if _SECRET_VALUE.search(value):
        return True
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_")
    named = bool(_SECRET_NAME & set(words)) or {"api", "key"} <= set(words) or {"access", "key"} <= set(words)
    refers = words[-1] in {"name", "id", "arn", "type", "pooling"}  # to a secret, or to a token of a text
    opaque = bool(re.fullmatch(r"[^\s/:]{8,}", value)) and not re.fullmatch(r"[\d.]+|<[^<>]+>", value)
    return named and opaque and not refers

"""Who may talk to an embedded cloud: its owner, the containers of its jobs, and whoever they made a key for.

A port on 127.0.0.1 is open to every user of the machine and to every web page in a browser on it, and whoever may start
a training job here runs programs as the owner. So a request is let in only if it names this cloud's own address, does
not come from a web page, and is signed with a key of this cloud.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs

from moto.iam.models import iam_backends

from sagefit.cloud.keys import Key, RoleKeys

# What no AWS has: moto's own interface, which shows all that the cloud holds and can empty it, and the cloud's state.
_CONTROL = ("/moto-api", "/_sagefit")
_NAMES, _HTTP = ("127.0.0.1", "localhost"), "80"  # of this machine, and the port that a client leaves out
_ENV = 'eval "$(sagefit cloud env)"'
_SIGNED = re.compile(r"^AWS4-[A-Z0-9-]+ +(?:.*?[, ])?Credential=([^/,\s]+)/|^AWS ([^:\s]+):")


@dataclass(frozen=True)
class Refusal:
    """Why a request is not let in: the rule, what to do, and which kind of error it is."""

    kind: Literal["address", "page", "unsigned", "key", "control"]
    why: str


@dataclass(frozen=True)
class Door:
    """The door of the cloud at ``port``, with the keys of its owner and of the roles of its containers."""

    port: int
    owner: Key
    roles: RoleKeys

    def refusal(self, environ: Mapping[str, Any]) -> Refusal | None:
        """Why a request is refused; None if it may come in. Its body is not read."""
        host = str(environ.get("HTTP_HOST", ""))
        name, _, port = host.lower().partition(":")
        if name not in _NAMES or (port or _HTTP) != str(self.port):
            own = f"{_NAMES[0]}:{self.port}"
            return Refusal("address", f"Host {ascii(host)[:100]} is not this embedded cloud: ask for {own}")
        if "HTTP_ORIGIN" in environ:
            return Refusal("page", "requests of web pages (with an Origin) are refused by the embedded cloud")
        key = key_of(environ)
        if key is None:
            return Refusal("unsigned", f"the embedded cloud answers signed requests only: {_ENV}")
        if _same(key, self.owner.id):
            return None
        if not (self.roles.role(key) or _was_made_here(key)):
            return Refusal("key", f"this access key is not of this embedded cloud; each start has new ones: {_ENV}")
        if str(environ.get("PATH_INFO", "")).startswith(_CONTROL):
            return Refusal("control", f"{' and '.join(_CONTROL)} answer the owner of the embedded cloud alone: {_ENV}")
        return None


def key_of(environ: Mapping[str, Any]) -> str | None:
    """The id of the access key of a request: of its header, or of a URL that was signed beforehand."""
    if header := environ.get("HTTP_AUTHORIZATION"):
        found = _SIGNED.match(str(header))
        return (found[1] or found[2]) if found else None
    query = parse_qs(str(environ.get("QUERY_STRING", "")))
    named = query.get("X-Amz-Credential", query.get("AWSAccessKeyId", []))
    return named[0].partition("/")[0] if len(named) == 1 else None


def _same(sent: str, key: str) -> bool:
    return hmac.compare_digest(sent.encode(errors="replace"), key.encode())


def _was_made_here(key: str) -> bool:
    """Whether IAM or STS of this cloud handed the key out, and it is in use."""
    accounts = [partition for account in list(iam_backends.values()) for partition in list(account.values())]
    found = next((backend.access_keys[key] for backend in accounts if key in backend.access_keys), None)
    return found is not None and found.status == "Active"

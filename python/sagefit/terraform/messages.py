"""What Terraform says, read: its stream of events, and its failures in words that name the knob."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sagefit.errors import FAILED, INVALID, REFUSED, SagefitError
from sagefit.paths import display

_ABSENT = r'import an existing object to ("(?:[^"\\]|\\.)*"), the provider detected that no object exists'
_RECOVER = "{recover}"
_KNOWN = [
    (
        r"state file could not be parsed",  # the error is about the lock, for which Terraform opens the file
        "it was cut off as it was written; mend it, and take what was made into the state: " + _RECOVER,
        FAILED,
    ),
    (
        r"Error acquiring the state lock",
        "somebody else is planning or applying {key}; wait. If that one is gone, release what it has left: " + _RECOVER,
        INVALID,
    ),
    (
        r"Error releasing the state lock|Failed to (save|persist) state",
        "take what was made back into the state, and release its lock: " + _RECOVER,
        FAILED,
    ),
    (
        r"AlreadyExists|AlreadyOwnedByYou|already exists",
        "if an apply that was ended has made it, take it into the state: " + _RECOVER,
        FAILED,
    ),
    (r"Saved plan is stale", "the state changed after this plan was made; plan again and have it reviewed", REFUSED),
    (
        r"Failed to query available provider packages|Could not retrieve the list of available versions|"
        r"provider registry\.\S+ was not found in any of the search locations",
        "no provider could be found: point SAGEFIT_PLUGIN_MIRROR at a filesystem mirror that holds hashicorp/aws, "
        "or allow access to the provider registry",
        INVALID,
    ),
    (
        r"No valid credential sources found|ExpiredToken|InvalidClientTokenId",
        "log in to AWS, or use the embedded cloud: sagefit cloud up, then CLOUD=local",
        INVALID,
    ),
    (
        r"Invalid value for variable|Resource precondition failed|Invalid variable|Check block",
        "correct the job file",
        INVALID,
    ),
]


def holds_a_lock(said: str) -> bool:
    """Whether a command says that it could not give back the lock of the state."""
    return "Error releasing the state lock" in said


class TerraformError(SagefitError):
    """A failure of Terraform. ``absent`` has addresses that were to be imported, and of which there is nothing."""

    def __init__(self, text: str, absent: frozenset[str], *, hint: str, exit_code: int) -> None:
        super().__init__(text, hint=hint, exit_code=exit_code)
        self.absent = absent


def failure(code: int, out: str, error: str, *, root: Path, **names: str) -> TerraformError:
    """The error for a command that ended with ``code``; ``names`` are what hints may name, ``recover`` among them."""
    found = [event["diagnostic"] for event in events(out) if event.get("type") == "diagnostic"]
    errors = [diagnostic for diagnostic in found if diagnostic["severity"] == "error"]
    ended = f"Terraform ended with exit code {code}" if code >= 0 else f"Terraform was ended by signal {-code}"
    text = "\n".join(dict.fromkeys(map(_diagnostic, errors))) or _prose(error or out) or ended
    absent = frozenset(filter(None, map(_absent, errors)))
    for pattern, hint, exit_code in _KNOWN:
        if re.search(pattern, text, re.IGNORECASE):
            return TerraformError(text, absent, hint=hint.format(**names), exit_code=exit_code)
    if code < 0:
        hint = f"take what it has made into the state: {names['recover']}"
        return TerraformError(ended, absent, hint=hint, exit_code=FAILED)
    return TerraformError(text, absent, hint=f"{ended} in {display(root)}", exit_code=FAILED)


def _absent(diagnostic: dict[str, Any]) -> str | None:
    """The address of something that was to be imported, and is not there."""
    found = re.search(_ABSENT, diagnostic.get("detail") or "")
    return str(json.loads(found[1])) if found else None


def events(stream: str) -> Iterator[dict[str, Any]]:
    """The events of a ``-json`` stream; a last line that is not whole is left out."""
    for line in stream.splitlines():
        with contextlib.suppress(ValueError):
            if line.startswith("{") and isinstance(event := json.loads(line), dict):
                yield event


def _diagnostic(diagnostic: dict[str, Any]) -> str:
    place = diagnostic.get("range") or {}
    where = f" ({place['filename']}:{place['start']['line']})" if place else ""
    return f"{diagnostic['summary']}{where}: {diagnostic.get('detail') or ''}".strip().rstrip(":")


def _prose(text: str) -> str:
    """Terraform's boxed error without the box and the colour."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.strip("╷│╵ ").rstrip() for line in plain.splitlines()]
    return "\n".join(line for line in lines if line)

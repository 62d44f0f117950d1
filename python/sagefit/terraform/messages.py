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

_KNOWN = [
    (
        r"Error acquiring the state lock",
        "somebody else is planning or applying {key}; wait. If that process is dead: "
        "TF_DATA_DIR={data} terraform -chdir={root} force-unlock ID",
        INVALID,
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


def failure(code: int, out: str, error: str, *, root: Path, **names: object) -> SagefitError:
    """The error for a command that ended with ``code``; ``names`` are what hints may name."""
    diagnostics = [event["diagnostic"] for event in events(out) if event.get("type") == "diagnostic"]
    texts = [_diagnostic(d) for d in diagnostics if d["severity"] == "error"] or [_prose(error or out)]
    text = "\n".join(dict.fromkeys(texts))
    for pattern, hint, exit_code in _KNOWN:
        if re.search(pattern, text, re.IGNORECASE):
            return SagefitError(text, hint=hint.format(root=root, **names), exit_code=exit_code)
    ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return SagefitError(text, hint=f"Terraform ended with {ended} in {display(root)}", exit_code=FAILED)


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

"""The table of docs/state.md: what Terraform asks of AWS for a state, from ``python/sagefit/doctor/calls.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sagefit.doctor.permissions import rows

_MARKS = re.compile(
    r"(?P<start><!-- made from \.\./python/sagefit/doctor/calls\.json -->\n).*?(?=<!-- end -->)", re.DOTALL
)
_OPEN = re.compile(r"\{(\w+)\}")
_WHEN = {
    "": "always",
    "key": "the backend has a `kms_key_id`",
    "lock file": "`use_lockfile`",
    "lock file, key": "`use_lockfile`, and the backend has a `kms_key_id`",
    "lock table": "`dynamodb_table`",
}


def with_state_table(page: Path) -> str:
    """The text of the page with its table made anew."""
    return _MARKS.sub(
        lambda match: match["start"] + "\n" + "\n".join(_table()) + "\n\n", page.read_text(encoding="utf-8")
    )


def _table() -> Iterator[str]:
    yield "| to | calls | on | where |"
    yield "|---|---|---|---|"
    for row in rows():
        if row.of == "state":
            calls = ", ".join(f"`{action}`" for action in row.actions)
            on = ", ".join("the key" if arn == "{key}" else f"`{_OPEN.sub(_capital, arn)}`" for arn in row.on)
            yield f"| {row.to} | {calls} | {on} | {_WHEN[row.when]} |"


def _capital(match: re.Match[str]) -> str:
    return match[1].upper()

"""The table of examples/gitops/roles/README.md: the rows of ``tests/gitops/denied.yaml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sagefit.paths import ROOT

_MARKS = re.compile(r"(?P<start><!-- made from \S*/gitops/denied\.yaml -->\n).*?(?=<!-- end -->)", re.DOTALL)
_IAM_NAMES = {"stepfunctions": "states"}
_ASKED, _SENT = "the planned policies", "a request under the role"


def with_denied(page: Path) -> str:
    """The text of the page with its table made anew."""
    return _MARKS.sub(
        lambda match: match["start"] + "\n" + "\n".join(_table()) + "\n\n", page.read_text(encoding="utf-8")
    )


def _table() -> Iterator[str]:
    rows: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests/gitops/denied.yaml").read_text(encoding="utf-8"))
    yield "| role | call | on | shown by |"
    yield "|---|---|---|---|"
    for role in ("both", "plan", "apply"):
        shown: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            if row["role"] == role:
                shown.setdefault((_action(row), row["what"]), []).append(_ASKED if "action" in row else _SENT)
        for (action, what), by in sorted(shown.items()):
            yield f"| {role} | `{action}` | {what} | {', '.join(sorted(set(by)))} |"


def _action(row: dict[str, Any]) -> str:
    """The action in IAM; of a request by the name of its method."""
    if "action" in row:
        return str(row["action"])
    service, method = row["sends"].split()
    return f"{_IAM_NAMES.get(service, service)}:{method.title().replace('_', '')}"

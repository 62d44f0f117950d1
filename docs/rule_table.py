"""The table of docs/aws.md: the rows of ``tests/aws/rules.yaml``, whose rules the embedded cloud's functions tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sagefit.paths import ROOT
from sagefit_cloud.rules import RULES, name_of

_MARKS = re.compile(r"(?P<start><!-- made from \.\./tests/aws/rules\.yaml -->\n).*?(?=<!-- end -->)", re.DOTALL)
_LONGEST = 120  # letters of a request; the file has the rest
_KNOWN = {"answer": "AWS's words", "rule": "AWS's rule", "read": "as we read it"}


def with_rules(page: Path) -> str:
    """The text of a page with its table made anew."""
    table = "\n".join(_lines())
    return _MARKS.sub(lambda match: f"{match['start']}\n{table}\n\n", page.read_text(encoding="utf-8"))


def _lines() -> Iterator[str]:
    told = {name_of(rule): str(rule.__doc__).splitlines()[0] for rules in RULES.values() for rule in rules}
    rows = yaml.safe_load((ROOT / "tests" / "aws" / "rules.yaml").read_text(encoding="utf-8"))
    yield "| rule | operation | broken by | answer | known | refused before | source |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        cells = (
            row.get("says") or told[row["rule"]],
            row["asks"].partition(":")[2],
            f"`{_request(row['breaks'])}`",
            f"{row.get('code', 'ValidationException')}: {row['answer'] or '(no text)'}",
            _KNOWN[row["known"]],
            _before(row),
            row["source"],
        )
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _request(breaks: dict[str, Any]) -> str:
    text = json.dumps(breaks, ensure_ascii=False).replace("`", "'")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _before(row: dict[str, Any]) -> str:
    if "never" in row:
        return f"no plan has it: {row['never']}"
    return "by the plan" if "/" in row["before"] or row.get("plan_alone") else "in the job file, and by the plan"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

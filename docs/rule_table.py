"""The tables of docs/aws.md: the rows of ``tests/aws/rules.yaml``, whose rules the embedded cloud's functions tell, and
those of ``tests/aws/paths.yaml``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sagefit.paths import ROOT
from sagefit_cloud.rules import RULES, name_of

_MARKS = re.compile(
    r"(?P<start><!-- made from \.\./tests/aws/(?P<of>rules|paths)\.yaml -->\n).*?(?=<!-- end -->)", re.DOTALL
)
_LONGEST = 120  # letters of a request; the file has the rest
_KNOWN = {"answer": "AWS's words", "rule": "AWS's rule", "read": "as we read it"}


def with_rules(page: Path) -> str:
    """The text of a page with its tables made anew."""
    tables = {"rules": _rules, "paths": _paths}

    def made(match: re.Match[str]) -> str:
        lines = "\n".join(tables[match["of"]](_rows(match["of"])))
        return f"{match['start']}\n{lines}\n\n"

    return _MARKS.sub(made, page.read_text(encoding="utf-8"))


def _rows(of: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "aws" / f"{of}.yaml").read_text(encoding="utf-8"))
    return rows


def _paths(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| rule | otherwise | a job file is told | the plan has it | the embedded cloud asks for it | source |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        shown = [_shown(row[column]) for column in ("job_file", "plan", "cloud")]
        yield f"| {' | '.join(_cell(cell) for cell in (row['rule'], row['otherwise'], *shown, row['source']))} |"


def _shown(test: str) -> str:
    file, _, name = test.partition("::")
    return f"`{file.rpartition('/')[2]}`, `{name}`" if name else "no job file can break it"


def _rules(rows: list[dict[str, Any]]) -> Iterator[str]:
    told = {name_of(rule): str(rule.__doc__).splitlines()[0] for rules in RULES.values() for rule in rules}
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

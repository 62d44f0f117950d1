"""The tables of docs/images.md, between ``<!-- made from images.json: KIND -->`` and ``<!-- end -->``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sagefit.job.image_table import Family, algorithms, frameworks, processing
from sagefit_launcher.__main__ import OLDEST

_MARKS = re.compile(r"(?P<start><!-- made from images.json: (?P<kind>\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def with_image_tables(page: Path) -> str:
    """The text of a page with its tables made anew."""

    def table(match: re.Match[str]) -> str:
        rows = _frameworks() if match["kind"] == "frameworks" else _algorithms()
        return match["start"] + "\n" + "\n".join(rows) + "\n\n"

    return _MARKS.sub(table, page.read_text(encoding="utf-8"))


def _frameworks() -> Iterator[str]:
    yield "| `framework` | `version` | no code on | for | regions |"
    yield "|---|---|---|---|---|"
    for name, family in frameworks().items():
        only = " (processing steps only)" if name in processing() else ""
        newest = len(family.regions(list(family.versions)[-1]))
        oldest = len(family.regions(next(iter(family.versions))))
        regions = f"{newest}" if newest == oldest else f"{oldest}, for the newest version {newest}"
        processors = " and ".join(map(str.upper, family.processors))
        yield f"| `{name}`{only} | {_versions(family)} | {_too_old(family)} | {processors} | {regions} |"


def _algorithms() -> Iterator[str]:
    yield "| `algorithm` | `version` | regions |"
    yield "|---|---|---|"
    for name, family in sorted(algorithms().items()):
        yield f"| `{name}` | {_versions(family)} | {len(family.accounts)} |"


def _too_old(family: Family) -> str:
    """The versions whose every Python is too old for the launcher."""
    old = [
        version
        for version, tags in family.versions.items()
        if all((python := family.python(version, tag)) and python < OLDEST for tag in tags)
    ]
    return ", ".join(old) or "-"


def _versions(family: Family) -> str:
    """The short forms with what they stand for, where that is not plain."""
    if not family.aliases:
        return ", ".join(family.versions)
    return ", ".join(
        short if exact.startswith(f"{short}.") else f"{short} ({exact})" for short, exact in family.aliases.items()
    )

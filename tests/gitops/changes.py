"""What was planned for changes that nobody had to plan: records with pages, errors, and what reviews them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from sagefit.gitops import whole
from sagefit.gitops.binding import PAGE, Origin, Place, Record, State, Tools, private
from sagefit.gitops.guards import Guarded
from sagefit.gitops.normalised import Normalised
from sagefit.gitops.parallel import ERROR
from sagefit.gitops.whole import Whole
from sagefit.reviewing import Brief

COMMIT = "0123456789abcdef0123456789abcdef01234567"
EXPIRES = datetime(2026, 12, 1, 9, 30, tzinfo=timezone.utc)


def planned(out: Path, key: str, brief: Brief, page: str = "", blocked: tuple[str, ...] = ()) -> None:
    """A stack that was planned, with its page."""
    folder = out / key
    folder.mkdir(parents=True)
    page = page or f"<!-- sagefit:plan stack={key} v=1 -->\n## Plan: {key}: {brief.verdict}\n\nThe page of {key}.\n"
    record = Record(
        stack=key,
        destroy=False,
        place=Place("aws", "123456789012", "us-east-1"),
        origin=Origin(COMMIT, None, dirty=False, tree="", platform_document=None),
        tools=Tools("1.11.4", {}, "0"),
        state=State("", 0),
        plan="",
        normalised=key,
        content=Normalised({}, {}, ""),
        created=(EXPIRES - timedelta(days=1)).isoformat(),
        expires=EXPIRES.isoformat(),
    )
    record.judged(page, list(blocked), brief).save(folder)
    private(folder / PAGE, page)


def failed(out: Path, key: str, error: str) -> None:
    """A stack or a file that could not be planned."""
    (out / key).mkdir(parents=True)
    private(out / key / ERROR, error)


def reviewer(out: Path, *files: str, blocked: bool = False) -> None:
    """What a change alters of that which reviews it."""
    found = tuple(Guarded(Path(file), "reviewer", "It makes the pages.") for file in files)
    whole.save(Whole(COMMIT, "critical", found, (), blocked), out, "The pages were made without them.")


def brief(verdict: str = "review needed", counts: str = "1 add, 2 change, 0 destroy", **fields: Any) -> Brief:
    """What the overview says of a plan."""
    return Brief(verdict=verdict, counts=counts, **fields)

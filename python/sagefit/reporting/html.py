"""The page itself: one file of HTML that needs nothing else, runs no script and asks nobody."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from sagefit.console import command
from sagefit.explaining import Explanation, Remedy
from sagefit.explaining.view import CONFIDENCE
from sagefit.failures import END, OF_GROWTH, Excerpt
from sagefit.job.secret_texts import without_secrets
from sagefit.reporting import drawing
from sagefit.reporting.gathering import Chapter, Story
from sagefit.running import AttemptRecord, RunRecord, view
from sagefit.running.records import StepRecord
from sagefit.version import __version__

GENERATOR = "Sagefit report"
"""How a page says of itself that it may be written anew."""
_HERE = Path(__file__).parent
PICTURES_CSS = _HERE / "pictures.css"
_KINDS = {"+": "added", "-": "taken"}
_STATUSES = {"RUNNING": "running", "SUCCEEDED": "good", "FAILED": "memory"}


class Line(NamedTuple):
    """A line of a log or of a diff, and how it is shown."""

    words: str
    cause: bool = False
    kind: str = ""


def page_of_run(story: Story, cloud: str) -> str:
    """The page of one run."""
    return _page([story], story.record.run.name, cloud, of_job=False)


def page_of_job(job: str, stories: Sequence[Story], cloud: str) -> str:
    """The page of runs of one job, at least one, the newest first."""
    return _page(stories, job, cloud, of_job=True)


def _page(stories: Sequence[Story], title: str, cloud: str, *, of_job: bool) -> str:
    style = "".join(file.read_text(encoding="utf-8") for file in (PICTURES_CSS, _HERE / "page.css"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(
        title=title,
        stories=stories,
        of_job=of_job,
        cloud=cloud,
        style=Markup(style),  # noqa: S704 - ours, and HTML has no escapes in it
        style_digest=digest,
        generator=GENERATOR,
        version=__version__,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_shown,
        keep_trailing_newline=True,
    )
    environment.filters.update(shorten=_shorten, code=_code)
    environment.globals.update(
        view=view,
        command=command,
        confidence=CONFIDENCE,
        width=drawing.WIDTH,
        curve_height=drawing.CURVE_HEIGHT,
        curve_left=drawing.CURVE_LEFT,
        course=drawing.course,
        spending=drawing.spending,
        memory=drawing.memory,
        kind=drawing.kind,
        legend=drawing.legend,
        gpus=_gpus,
        anchor=drawing.anchor,
        status_kind=_status_kind,
        number=drawing.number,
        name=_name,
        place=drawing.place,
        where=_where,
        lines=_lines,
        changed=_changed,
        advice=_advice,
        notes=_notes,
    )
    return environment.get_template("page.html.j2")


def _shown(value: Any) -> Any:
    """Every text that was not written here is shown without the credentials in it: a page is handed on."""
    return without_secrets(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _status_kind(record: RunRecord) -> str:
    return _STATUSES.get(record.status, "cloud")


def _name(job: AttemptRecord | StepRecord) -> str:
    return f"processing {job.name}" if isinstance(job, StepRecord) else job.name


def _where(found: Excerpt) -> str:
    who = f"{found.host}, {found.rank}" if found.rank else found.host
    return f"{who}, line {found.first + found.at}:" if found.at != END else f"The end of the log of {who}:"


def _lines(found: Excerpt) -> Iterator[Line]:
    width = len(str(found.first + len(found.lines)))
    for place, line in enumerate(found.lines):
        yield Line(f"{found.first + place:>{width}} | {line}", cause=place == found.at)


def _changed(remedy: Remedy) -> Iterator[Line]:
    for line in remedy.diff.splitlines():
        if not line.startswith(("---", "+++", "@@")) or remedy.text is None:
            yield Line(line, kind=_KINDS.get(line[:1], ""))


def _gpus(story: Story) -> bool:
    return any(attempt.gpu_peak_gib is not None for attempt in story.record.attempts)


def _code(text: str) -> Markup:
    """What stands between backticks as code."""
    parts = without_secrets(text).split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def _advice(found: Explanation) -> list[str]:
    leak = OF_GROWTH if found.attempt and found.attempt.growth else ()
    return [*leak, *found.diagnosis.remedies]


def _notes(story: Story, chapter: Chapter) -> list[str]:
    """What the ledger says of a step or attempt, without what its explanation has said already."""
    job = chapter.job
    said = view.of_step(job) if isinstance(job, StepRecord) else view.of_attempt(job)
    known = (f"{job.outcome}: ", "lost: ") if chapter.told else ()
    known = (*known, "next: ") if chapter is story.ended_by else known
    saving = [f"cheaper: {story.saving}"] if story.saving and chapter is story.chapters[-1] else []
    return [*(line for line in said if not line.startswith(known)), *saving]

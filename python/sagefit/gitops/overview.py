"""One text about a whole change: a headline, a row for each stack, what needs a decision, and the pages as folds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from sagefit.errors import REFUSED, SagefitError
from sagefit.gitops import whole
from sagefit.gitops.apply import reviewed_keys
from sagefit.gitops.binding import Record, text_digest
from sagefit.gitops.bundle import folder_of
from sagefit.gitops.hosts import file_addresses
from sagefit.gitops.parallel import ERROR, FILES
from sagefit.gitops.whole import Sealed
from sagefit.reviewing import Links
from sagefit.reviewing.briefs import JobBrief
from sagefit.reviewing.md import block, cell, code, summary
from sagefit.reviewing.page import DECISIONS
from sagefit.reviewing.rules import SEVERITIES

_NOTHING = "nothing to apply"
_VERDICTS = ("cannot be applied", "blocked", "review needed", "nothing dangerous found", _NOTHING)
_NAMED = 3
_EDGE = 400  # characters of the frame of a fold, and of what is said where one is left out
_FITS = ("OOM", "RISKY", "UNKNOWN", "FITS")


@dataclass(frozen=True)
class Part:
    """A stack with its record and page, or a stack or file with an error."""

    key: str
    record: Record | None = None
    page: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        """What to call it."""
        return unquote(self.key.removeprefix(FILES)) if self.key.startswith(FILES) else self.key

    @property
    def verdict(self) -> str:
        """That of the review, or that it was not planned."""
        return self.record.brief.verdict if self.record else "not planned"

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to do for it."""
        return self.verdict == _NOTHING

    @property
    def running(self) -> int:
        """Runs in progress that it may affect."""
        return self.record.brief.running if self.record and not self.is_quiet else 0

    @property
    def jobs(self) -> list[JobBrief]:
        """The jobs of its plan."""
        return self.record.brief.jobs if self.record else []


@dataclass(frozen=True)
class Overview:
    """What there is to say of a change, before it is fitted into a comment."""

    commit: str
    parts: tuple[Part, ...]
    reviewer: Sealed | None = None
    links: Links = field(default_factory=Links)
    region: str = ""
    """That of the pipeline, where there is one for each of several regions."""

    @property
    def is_empty(self) -> bool:
        """Whether the change touches nothing that anybody reviews here."""
        return not self.parts and not self.reviewer

    @property
    def digest(self) -> str:
        """The same for two changes that do the same."""
        told = [f"{part.key} {part.record.normalised if part.record else part.error}" for part in self.parts]
        return text_digest("\n".join([*told, self.reviewer.page if self.reviewer else ""]))

    def text(self, limit: int | None = None, address: str | None = None) -> str:
        """In Markdown, of at most ``limit`` characters; ``address`` is where the pages are that have no room."""
        head = "\n\n".join(self._head())
        room, folds, left = (limit or 10**9) - len(head) - 2 * _EDGE, [], []
        for part in self.parts:
            fold = _fold(part)
            if not fold:
                continue
            if len(fold) + 2 > room:
                left.append(part.name)
                continue
            room -= len(fold) + 2
            folds.append(fold)
        if left:
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            where = f"in [the run]({address})" if address else "beside the records"
            folds.append(f"There is no room here for {_codes(left[:_NAMED])}{more}: the pages are {where}.")
        return "\n\n".join([head, *folds]) + "\n"

    def _head(self) -> Iterator[str]:
        yield f"## Plan{f' ({self.region})' if self.region else ''}: {self._title()}"
        if self.is_empty:
            return
        if line := " · ".join(self._headline()):
            yield f"**{line}**"
        loud = [part for part in self.parts if not part.is_quiet]
        if len(loud) > 1:
            yield _table(loud)
        if quiet := [part.name for part in self.parts if part.is_quiet]:
            yield f"Nothing to do for {_codes(quiet[:_NAMED])}{_more(quiet)}."
        if decisions := list(_decisions(loud, self.links)):
            yield "### Needs a decision"
            yield from decisions
        if self.reviewer:
            yield self.reviewer.page.replace("## ", "### ", 1).strip()
        yield "\n".join(self._next(loud))

    def _title(self) -> str:
        if self.is_empty:
            return "touches no job and no platform"
        if failed := [part.name for part in self.parts if part.error]:
            return f"{code(failed[0])}{_more(failed, 1)} not planned"
        found = {part.verdict for part in self.parts}
        if self.reviewer:
            found.add("blocked" if self.reviewer.page.partition("\n")[0].endswith("blocked") else "review needed")
        verdict = next(verdict for verdict in _VERDICTS if verdict in found)
        loud = [part.name for part in self.parts if not part.is_quiet]
        subject = code(loud[0]) if len(loud) == 1 else f"{len(loud)} stacks"
        return f"{subject}: {verdict}" if loud else verdict

    def _headline(self) -> Iterator[str]:
        jobs = [job for part in self.parts for job in part.jobs if job.fit]
        loud = [part for part in self.parts if not part.is_quiet]
        if len(loud) == 1 and (told := _counts(loud[0])):
            yield told
        if jobs:
            yield f"a run costs at most {_price(jobs, 'run')}"
            if any(job.month or job.month_before for job in jobs):
                yield f"a month {_price(jobs, 'month')}"
            yield _memory(jobs)
        if running := sum(part.running for part in self.parts):
            yield f"{running} {'run' if running == 1 else 'runs'} in progress"
        if found := _dangers(self.parts, self.reviewer):
            yield found

    def _next(self, loud: list[Part]) -> Iterator[str]:
        """What happens on a merge."""
        platforms = {part.key.partition("/")[0] for part in loud if part.key.endswith("/platform")}
        if any(part.key.partition("/")[0] in platforms and part.jobs for part in self.parts):
            yield (
                f"Jobs of {_codes(sorted(platforms))} are planned against the platform as it is now. Once that is "
                "applied, they are planned again, and wait for a review if it makes a difference to them.\n"
            )
        for part in loud:
            if part.record and part.record.brief.sharing:
                jobs = part.record.brief.sharing
                yield f"{code(part.name)} is shared by {jobs} {'job' if jobs == 1 else 'jobs'}: the page names them.\n"
        records = [part.record for part in loud if part.record]
        blocking = [finding for record in records for finding in record.blocked]
        if any(part.error for part in loud):
            yield "What was not planned cannot be applied: correct it and push again.\n"
        if blocking:
            yield (
                f"An apply refuses this, unless somebody who may decide it approves each finding by name: "
                f"{_codes(blocking[:_NAMED])}{_more(blocking)}.\n"
            )
        elif records:
            until = min(datetime.fromisoformat(record.expires) for record in records)
            yield (
                "Once it is merged and its apply is approved, it is applied if a plan made then does the same. "
                f"This holds until {until:%Y-%m-%d %H:%M} UTC.\n"
            )
        yield f"Planned from {code(self.commit[:12])}."


def overview(out: Path, commit: str, region: str = "") -> Overview:
    """Of what was planned into ``out``, from ``commit``; by the pipeline of a ``region`` where there are several.

    Raises SagefitError (exit code 4) for a record or a page that was edited, or is sealed under another key, and for a
    plan of another region.
    """
    parts = []
    for key in reviewed_keys(out):
        record = Record.load(folder_of(out, key))
        if region and record.place.region != region:
            raise SagefitError(
                f"{key} was planned for {record.place.region}, and this is the pipeline of {region}",
                hint="name the region of the plans: --region, or SAGEFIT_REVIEW_REGION",
                exit_code=REFUSED,
            )
        parts.append(Part(key, record, record.page_of(folder_of(out, key)) or ""))
    for path in sorted(out.rglob(ERROR)):
        error = path.read_text(encoding="utf-8")
        parts.append(Part(path.parent.relative_to(out).as_posix(), error=error))
    about = whole.load(out)
    commit = next((part.record.origin.head for part in parts if part.record), about.commit if about else commit)
    parts.sort(key=lambda part: (part.record is not None, _rank(part), part.key))
    return Overview(commit, tuple(parts), about, Links(file_addresses(commit)), region)


def _rank(part: Part) -> int:
    return _VERDICTS.index(part.verdict) if part.verdict in _VERDICTS else 0


def _table(parts: list[Part]) -> str:
    """A row for each stack, with the columns that say something."""
    jobs = {part.key: [job for job in part.jobs if job.fit] for part in parts}
    monthly = any(job.month or job.month_before for found in jobs.values() for job in found)
    columns: list[tuple[str, str, list[str]]] = [
        ("stack", "---", [cell(part.name) for part in parts]),
        ("plan", "---", [f"**{part.verdict}**" if _counts(part) == "" else _counts(part) for part in parts]),
        ("dangers", "---", [_dangers([part]) for part in parts]),
        ("a run, at most", "--:", [_price(jobs[part.key], "run") for part in parts]),
        ("a month", "--:", [_price(jobs[part.key], "month") if monthly else "" for part in parts]),
        ("memory", "---", [_memory(jobs[part.key]) for part in parts]),
        ("runs in progress", "--:", [str(part.running or "") for part in parts]),
    ]
    shown = [column for column in columns if any(column[2])]
    rows = zip(*(cells for _, _, cells in shown), strict=True)
    lines = [[title for title, *_ in shown], [line for _, line, _ in shown], *rows]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def _decisions(parts: list[Part], links: Links) -> Iterator[str]:
    for part in parts:
        if part.error:
            first = part.error.removeprefix("error: ").strip().splitlines() or ["no word of why"]
            yield f"- **not planned** {_where(part, first[0], links)}: {code(first[0][:300])}"
        elif part.record and part.record.brief.decisions:
            if len(parts) > 1:
                yield f"{code(part.name)}:"
            yield "\n".join(part.record.brief.decisions)


def _where(part: Part, error: str, links: Links) -> str:
    """A file that cannot be read, at the line that its error names."""
    if not part.key.startswith(FILES) or not links.files:
        return code(part.name)
    found = re.match(rf"{re.escape(part.name)}:(\d{{1,6}}):", error)
    return links.file(part.name, int(found[1]) if found else None)


def fold_of(folder: Path, title: str) -> str:
    """The page in the folder of a stack as a fold.

    Raises SagefitError (exit code 4) for a record or a page that was edited, or is sealed under another key.
    """
    return _details(title, _inner(Record.load(folder).page_of(folder) or ""))


def _fold(part: Part) -> str:
    if part.error:
        return _details(f"{part.name}: why it was not planned", block(part.error.splitlines(), "text"))
    return "" if part.is_quiet else _details(f"{part.name}: {part.verdict}", _told(part))


def _told(part: Part) -> str:
    """The page, without the decisions where all of them stand above."""
    lines, decided = _inner(part.page).splitlines(), part.record.brief.decisions if part.record else []
    if DECISIONS not in lines or (decided and decided[-1].startswith("- and ")):
        return "\n".join(lines)
    start = lines.index(DECISIONS)
    above = {*decided, "Nothing.", ""}
    end = next((at for at in range(start + 1, len(lines)) if lines[at] not in above), len(lines))
    return "\n".join([*lines[:start], *lines[end:]])


def _inner(page: str) -> str:
    """A page without its marker and its title."""
    lines = page.splitlines()
    start = next((at for at, line in enumerate(lines) if not line.startswith(("<!-- ", "## ")) and line), 0)
    return "\n".join(lines[start:])


def _details(title: str, text: str) -> str:
    return f"<details><summary>{summary(title)}</summary>\n\n{text}\n\n</details>"


def _counts(part: Part) -> str:
    """What is done, without what is not."""
    if part.record is None:
        return ""
    told = [each for each in part.record.brief.counts.split(", ") if not each.startswith("0 ")]
    return ", ".join(told) or ("outputs" if not part.is_quiet else "")


def _dangers(parts: Iterable[Part], reviewer: Sealed | None = None) -> str:
    found = [part.record.brief.dangers for part in parts if part.record]
    found += [{reviewer.severity: 1}] if reviewer else []
    told = [(severity, sum(each.get(severity, 0) for each in found)) for severity in SEVERITIES]
    return ", ".join(f"{count} {severity}" for severity, count in told if count)


def _price(jobs: list[JobBrief], of: str) -> str:
    """What a run or a ``month`` of all jobs costs in USD, and the difference; empty without jobs."""
    if not jobs:
        return ""
    monthly = of == "month"
    after = _sum([(job.month or 0.0) if monthly else job.run for job in jobs])
    before = _sum([(job.month_before or 0.0) if monthly else 0.0 if job.is_new else job.run_before for job in jobs])
    if after is None:
        return "not known"
    about = f"{'about ' if any(job.estimated for job in jobs) else ''}{after:,.2f} USD"
    if before is None or abs(after - before) < 0.005 or all(job.is_new for job in jobs):
        return about
    return f"{about} ({after - before:+,.2f})"


def _sum(prices: list[float | None]) -> float | None:
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def _memory(jobs: list[JobBrief]) -> str:
    """The worst of their fits."""
    if not jobs:
        return ""
    worst = min(jobs, key=lambda job: (_FITS.index(job.fit) if job.fit in _FITS else 0, -(job.share or 0)))
    words = {"FITS": "fits", "RISKY": "may not fit", "OOM": "does not fit"}.get(worst.fit, "memory not known")
    return f"{words} ({worst.share:.0%} of memory)" if worst.share is not None else words


def _codes(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))


def _more(names: list[str], named: int = _NAMED) -> str:
    return f" and {len(names) - named} more" if len(names) > named else ""

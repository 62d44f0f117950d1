"""The page of a change as a whole: what it alters of that which reviews and applies it.

It belongs to no stack, so it is there also when a change touches none. It has a seal of its own, as a record has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path

from sagefit.errors import BLOCKED, DONE, REFUSED, SagefitError
from sagefit.gitops.binding import PAGE, private, text_digest
from sagefit.gitops.changed import Report
from sagefit.gitops.guards import RULE, Guarded
from sagefit.gitops.normalised import keyed, review_key
from sagefit.paths import display
from sagefit.reviewing import Links, Tuning
from sagefit.reviewing.md import cell
from sagefit.reviewing.rules import SEVERITIES, Severity, rules

KEY = "change"
"""What `stacks.json` calls the change as a whole; keys of stacks have a slash."""

SEAL = "change.json"
_NAMED = 5  # files of a kind that are named; the rest are counted


@dataclass(frozen=True)
class Whole:
    """What a change alters of that which reviews it. ``accepted`` is what the settings at its base accept."""

    commit: str
    severity: Severity
    found: tuple[Guarded, ...]
    accepted: tuple[Guarded, ...]
    blocked: bool
    links: Links = field(default_factory=Links)

    @property
    def code(self) -> int:
        """The exit code of a plan of it."""
        return BLOCKED if self.blocked else DONE

    @property
    def summary(self) -> str:
        """In one line."""
        kinds = ", ".join(f"{what} ({len(files)} files)" for what, files in _kinds(self.found).items())
        return f"{'blocked, ' if self.blocked else ''}alters what reviews it: {kinds}"

    def page(self, made_by: str) -> str:
        """In Markdown; ``made_by`` says whose code made the pages of the change."""
        verdict = "blocked" if self.blocked else "review needed"
        lines = [f"## This change alters what reviews it: {verdict}", ""]
        rule = self.links.rule(RULE)
        lines += [f"**{self.severity}** {rule}: no plan shows what these files do, so read their lines. {made_by}"]
        lines += ["", "| what | files | why it matters |", "|---|---|---|"]
        for what, files in _kinds(self.found).items():
            lines.append(f"| {what} | {_names(files)} | {files[0].because} |")
        if self.accepted:
            lines += ["", f"Accepted by the repository: {_names(list(self.accepted))}."]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Sealed:
    """The page of a change as it was sealed, in Markdown, and how severe it is."""

    commit: str
    severity: str
    page: str


def whole_of(report: Report, tuning: Tuning, commit: str, links: Links | None = None) -> Whole | None:
    """What there is to say of a change by the settings at its base; None where it alters nothing that reviews."""
    today = datetime.now(timezone.utc).date()
    accepted = tuple(each for each in report.guarded if _accepted(each, tuning, today))
    found = tuple(each for each in report.guarded if each not in accepted)
    if not found:
        return None
    severity = tuning.severities.get(RULE) or rules()[RULE].severity
    blocked = bool(tuning.fail_on) and SEVERITIES.index(severity) <= SEVERITIES.index(tuning.fail_on or severity)
    return Whole(commit, severity, found, accepted, blocked, links or Links())


def save(whole: Whole, out: Path, made_by: str) -> None:
    """Write page and seal into ``out``."""
    folder, page = out / KEY, whole.page(made_by)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    private(folder / PAGE, page)
    said = {"v": 2, "commit": whole.commit, "severity": whole.severity, "page": text_digest(page)}
    private(folder / SEAL, json.dumps(said | {"seal": keyed(review_key(), said)}, indent=1) + "\n")


def load(out: Path) -> Sealed | None:
    """What is in ``out``; None without one.

    Raises SagefitError (exit code 4) for a page that was edited, or sealed under another key.
    """
    folder = out / KEY
    if not (folder / SEAL).exists():
        return None
    try:
        said = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        text = (folder / PAGE).read_text(encoding="utf-8")
        seal = said.pop("seal")
        found = Sealed(str(said["commit"]), str(said["severity"]), text)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise SagefitError(
            f"{display(folder)}: not the page of a change", hint="plan again", exit_code=REFUSED
        ) from error
    if seal != keyed(review_key(), said) or text_digest(text) != said["page"]:
        raise SagefitError(
            f"{display(folder)}: the page of the change was edited, or sealed under another key",
            hint="plan again; nobody should read or post this page",
            exit_code=REFUSED,
        )
    return found


def _accepted(guarded: Guarded, tuning: Tuning, today: date) -> bool:
    address = guarded.path.as_posix()
    return any(each.matches(RULE, address) and each.expires >= today for each in tuning.suppress)


def _kinds(found: tuple[Guarded, ...]) -> dict[str, list[Guarded]]:
    kinds: dict[str, list[Guarded]] = {}
    for each in found:
        kinds.setdefault(each.what, []).append(each)
    return kinds


def _names(files: list[Guarded]) -> str:
    rest = len(files) - _NAMED
    return ", ".join(cell(each.path.as_posix()) for each in files[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")

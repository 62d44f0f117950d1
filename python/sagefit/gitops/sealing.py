"""Judge and seal what another side planned, without running anything of the change.

Of the change this side reads data alone: its job files out of Git, and the plans that were handed over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

from sagefit.errors import BLOCKED, DONE, INVALID, SagefitError
from sagefit.gitops import bundle, handover, whole
from sagefit.gitops.binding import private
from sagefit.gitops.changed import changed
from sagefit.gitops.git import Repository
from sagefit.gitops.parallel import ERROR, FILES, Outcome, clear, unreadable
from sagefit.gitops.stacks import Stack, stacks_in
from sagefit.paths import ROOT
from sagefit.planning import JobPlan
from sagefit.reviewing import Written

_MOST_OF_AN_ERROR = 20_000  # characters


def seal(handed: Path, out: Path, *, base: str, head: str, lifetime: timedelta) -> list[Outcome]:
    """Write page and record of each plan in ``handed`` into ``out``; the outcome of each stack.

    The change is what ``head`` brings to ``base``, both commits of this clone; the settings are those of ``base``, also
    where the change left it long ago. A stack that it touches and that was not handed over has an error; so has a job
    file that cannot be read.
    """
    repository = Repository()
    commit, base = repository.commit(head), repository.commit(base)
    report = changed(base, commit)
    clear(out)
    found = {outcome.key: outcome for outcome in unreadable(out, report.broken)}
    keys = {touched.key for touched in report.touched}
    with tempfile.TemporaryDirectory(prefix="sagefit-seal-") as scratch:
        top = Path(scratch).resolve()
        repository.extract(commit, top)
        stacks, _ = stacks_in(top / ROOT.relative_to(repository.top))
        for key in sorted({*keys, *_handed(handed)}):
            stack = stacks.get(key)
            written = _written(repository, report.base, stack, top) if stack else None
            found[key] = _sealed(key, handed, out, stack, written, base, commit, lifetime)
    for key, text in _errors(handed):
        if key not in found:
            found[key] = _failed(out, key, text)
    about = whole.whole_of(report, bundle.settings_of(base), commit, bundle.links_of(commit, base))
    if about:
        here = repository.commit("HEAD")[:12]
        whole.save(about, out, f"The pages were made by Sagefit of commit {here}, without them.")
        found[whole.KEY] = Outcome(whole.KEY, None, about.code, said=about.summary)
    return list(found.values())


def _sealed(
    key: str,
    handed: Path,
    out: Path,
    stack: Stack | None,
    written: Written | None,
    base: str,
    head: str,
    lifetime: timedelta,
) -> Outcome:
    folder = bundle.folder_of(handed, key)
    if not (folder / handover.FILE).is_file():
        said = _text(folder / ERROR) or f"error: {key} was not planned\nhint: see why in the run that plans\n"
        return _failed(out, key, said)
    try:
        record, document, runs = handover.take_over(folder, key, head=head, base=base, lifetime=lifetime)
        job_plan = JobPlan(stack.job) if stack and stack.job else None
        record = bundle.judged(record, document, bundle.folder_of(out, key), job_plan, written, runs)
    except SagefitError as error:
        return _failed(out, key, f"{error}\n")
    return Outcome(key, record, BLOCKED if record.blocked else DONE)


def _written(repository: Repository, start: str, stack: Stack, top: Path) -> Written | None:
    """What the change edits in the file that a stack of the tree at ``top`` is written in."""
    if not stack.source.is_file() or stack.source.is_symlink():
        return None
    path = stack.source.relative_to(top).as_posix()
    return Written(path, repository.file(start, path), stack.source.read_bytes())


def _failed(out: Path, key: str, text: str) -> Outcome:
    folder = bundle.folder_of(out, key)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    private(folder / ERROR, text)
    return Outcome(key, None, INVALID, text.removeprefix("error: "))


def _handed(folder: Path) -> Iterator[str]:
    """The stacks that were handed over."""
    for path in sorted(folder.rglob(handover.FILE)):
        key = path.parent.relative_to(folder).as_posix()
        if handover.STACK.fullmatch(key):
            yield key


def _errors(folder: Path) -> Iterator[tuple[str, str]]:
    """What could not be planned, by the word of the side that planned."""
    for path in sorted(folder.rglob(ERROR)):
        key = path.parent.relative_to(folder).as_posix()
        if handover.STACK.fullmatch(key) or (key.startswith(FILES) and "\n" not in unquote(key)):
            yield key, _text(path)


def _text(path: Path) -> str:
    if not path.is_file() or path.is_symlink():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")[:_MOST_OF_AN_ERROR]

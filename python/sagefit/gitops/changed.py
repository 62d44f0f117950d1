"""Which stacks a change touches, and through which files."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sagefit.errors import SagefitError
from sagefit.gitops.git import FileChange, Repository
from sagefit.gitops.guards import Guarded, guarded
from sagefit.gitops.stacks import DEFAULT_PLATFORM, Broken, Input, Stack, inputs, keys_in, stacks_in
from sagefit.paths import JOBS, PLATFORMS, ROOT

_FIRST = 3  # files that are named as the reason; the rest are counted


@dataclass(frozen=True)
class Touched:
    """A stack that a change touches. ``because`` gives the reasons; ``other`` is its former key, or its new one."""

    key: str
    change: Literal["added", "changed", "deleted"]
    because: tuple[str, ...]
    other: str | None = None
    stack: Stack | None = None

    @property
    def reason(self) -> str:
        """Through what, in one line."""
        shown, rest = self.because[:_FIRST], len(self.because) - _FIRST
        renamed = {"added": "renamed from", "deleted": "renamed to"}.get(self.change)
        head = [f"{renamed} {self.other}"] if self.other and renamed else []
        return "; ".join([*head, *shown, *([f"and {rest} more"] if rest > 0 else [])])

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "stack": self.key,
            "kind": "platform" if self.key.endswith("/platform") else "job",
            "change": self.change,
            "renamed": self.other,
            "because": list(self.because),
        }


@dataclass(frozen=True)
class Report:
    """The stacks touched since ``base``, platforms first, and the job files that could not be read.

    ``guarded`` are changed files that decide what a review says or an apply does.
    """

    base: str
    head: str | None
    touched: tuple[Touched, ...]
    broken: tuple[tuple[str, SagefitError], ...]
    guarded: tuple[Guarded, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For programs; ``head`` is null for the files as they lie here."""
        errors = [{"file": file, "error": error.message} for file, error in self.broken]
        return {
            "base": self.base,
            "head": self.head,
            "stacks": [touched.as_json() for touched in self.touched],
            "reviewer": [guarded.as_json() for guarded in self.guarded],
            "errors": errors,
        }


def changed(base: str, head: str | None = None) -> Report:
    """The changes from where ``head`` branched from ``base`` up to ``head``; without ``head``, up to the files here.

    Raises SagefitError when Git cannot tell.
    """
    repository = Repository()
    start = repository.merge_base(base, head or "HEAD")
    end = repository.commit(head) if head else None
    files = repository.changes(start, end)
    with _tree(repository, start, JOBS, PLATFORMS) as before, _tree(repository, end) as top:
        place = ROOT.relative_to(repository.top)
        now, broken = stacks_in(top / place)
        earlier = {key: path.relative_to(before) for key, path in keys_in(before / place).items()}
        ways = {path: (top / path, *(top / path).parents) for path in _paths(files)}
        touched = [_touched(stack, earlier, files, ways, top, place) for stack in now.values()]
        found = {item.key: item for item in touched if item}
        _through_platforms(found, now)
        lost = {file.path.relative_to(top) for file in broken}
        for key, path in earlier.items():
            if key not in now and not lost & _places(path, files):
                found[key] = Touched(key, "deleted", (f"{path} (gone)",), _now_at(path, files, now, top))
        errors = tuple((str(file.path.relative_to(top)), _without(file, top)) for file in broken)
        deciding = tuple(guarded(files, place, lambda path: repository.file(start, path.as_posix()), _reader(top)))
    ordered = sorted(found.values(), key=lambda item: (not item.key.endswith("/platform"), item.key))
    return Report(start, end, tuple(ordered), errors, deciding)


def _reader(top: Path) -> Callable[[Path], bytes | None]:
    """Reads the files of a tree; a link is none."""

    def read(path: Path) -> bytes | None:
        whole = top / path
        return whole.read_bytes() if whole.is_file() and not whole.is_symlink() else None

    return read


@contextlib.contextmanager
def _tree(repository: Repository, commit: str | None, *folders: Path) -> Iterator[Path]:
    """The top of a tree (or some ``folders`` of it) as it was at ``commit``; without one, of the files here."""
    if commit is None:
        yield repository.top
        return
    with tempfile.TemporaryDirectory(prefix="sagefit-changed-") as scratch:
        repository.extract(commit, Path(scratch), *(str(folder.relative_to(repository.top)) for folder in folders))
        yield Path(scratch).resolve()


def _paths(files: list[FileChange]) -> list[Path]:
    return [path for file in files for path in (file.path, file.before) if path]


def _because(sources: list[Input], ways: dict[Path, tuple[Path, ...]]) -> Iterator[str]:
    """The changed files that belong to an input, each with its nearest input; ``ways`` are paths up to the root."""
    by_path = {item.path: item for item in reversed(sources)}
    modules = {parent: item for item in sources for parent in item.path.parents}  # a submodule is one changed path
    for path, way in ways.items():
        found = (by_path[place] for place in way if place in by_path)
        item = next((item for item in found if item.holds(way[0])), None) or modules.get(way[0])
        if item:
            yield f"{path} ({item.what})"


def _touched(
    stack: Stack,
    earlier: dict[str, Path],
    files: list[FileChange],
    ways: dict[Path, tuple[Path, ...]],
    top: Path,
    place: Path,
) -> Touched | None:
    because = list(_because(inputs(stack, top / place), ways))
    if stack.key in earlier or stack.key == f"{DEFAULT_PLATFORM}/platform":
        return Touched(stack.key, "changed", tuple(because), stack=stack) if because else None
    own = stack.source.relative_to(top)
    origins = {own, *(file.before for file in files if file.path == own)}
    before = next((key for key, path in earlier.items() if path in origins), None)
    return Touched(stack.key, "added", tuple(because) or (f"{own} (new)",), before, stack)


def _now_at(path: Path, files: list[FileChange], now: dict[str, Stack], top: Path) -> str | None:
    """The new key when the file of a stack that is gone now belongs to another stack."""
    places = _places(path, files)
    return next((key for key, stack in now.items() if stack.source.relative_to(top) in places), None)


def _places(path: Path, files: list[FileChange]) -> set[Path]:
    """A file's own path, and where it was moved to."""
    return {path, *(file.path for file in files if file.before == path)}


def _through_platforms(found: dict[str, Touched], now: dict[str, Stack]) -> None:
    """Jobs read what their platform publishes, so a change to the platform may change its jobs."""
    for stack in now.values():
        through = found.get(f"{stack.platform}/platform")
        if through and not stack.is_platform:
            own = found.get(stack.key)
            reasons = (*(own.because if own else ()), f"platform {stack.platform}")
            found[stack.key] = Touched(
                stack.key, own.change if own else "changed", reasons, own.other if own else None, stack
            )


def _without(file: Broken, top: Path) -> SagefitError:
    """The error with paths as the repository has them, when the file lies in a copy."""
    return SagefitError(file.error.message.replace(f"{top}/", ""), hint=file.error.hint)

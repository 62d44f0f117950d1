"""Files that decide what a review says and what an apply does: a change of them shows in no plan.

The pages of a change cannot judge it, so it is a finding of its own, with the first severity there is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sagefit.gitops.git import FileChange

RULE = "reviewer-changed"
Reader = Callable[[Path], "bytes | None"]
"""The content of a file by its path from the top of the repository; None where there is none."""


@dataclass(frozen=True)
class Guard:
    """A kind of such files, by patterns of paths from the top of the repository or from Sagefit's root in it.

    A pattern is as in ``.gitignore``: a name is looked for in every folder, a path with a slash from the root.
    """

    what: str
    because: str
    patterns: tuple[str, ...]
    of_repository: bool = False

    def holds(self, path: Path, place: Path) -> bool:
        """Whether a changed file is of this kind; ``place`` is Sagefit's root, from the top of the repository."""
        if self.of_repository:
            inner = path
        elif path.is_relative_to(place):
            inner = path.relative_to(place)
        else:
            return False
        return any(_matches(PurePosixPath(inner.as_posix()), pattern) for pattern in self.patterns)


GUARDS = (
    Guard(
        "pipelines",
        "They decide what is planned, what is applied, and which secrets the code of a change can read.",
        (
            "/.github/",
            "/.gitlab/",
            "/.gitlab-ci.yml",
            "/.circleci/",
            "/.ci/",
            "/atlantis.yaml",
            "/azure-pipelines.yml",
            "/bitbucket-pipelines.yml",
            "/Jenkinsfile",
            "CODEOWNERS",
            ".gitattributes",
            ".gitmodules",
        ),
        of_repository=True,
    ),
    Guard(
        "reviewer",
        "It makes the pages, seals the records and runs the apply.",
        ("/python/", "/tools/", "/Makefile", "/pyproject.toml", "/.pre-commit-config.yaml", "/policies/"),
    ),
    Guard(
        "settings of the review",
        "They say what is accepted and what blocks.",
        ("/.sagefit-review.yaml", "/.checkov.yaml"),
    ),
    Guard(
        "packages",
        "They decide whose code runs in the reviewer, in Terraform and in the pipelines.",
        ("/requirements*.lock", "/requirements*.txt", ".terraform.lock.hcl", ".terraformrc", "*.tfrc"),
    ),
    Guard(
        "tables",
        "Prices, limits, memory and causes of failures are judged by them.",
        ("/modules/*/*.json", "/modules/*/*.csv", "/modules/training-job/launcher/"),
    ),
)

_FOLDERS = ("/", "/job/", "/modules/*/")
_TERRAFORM = Guard(
    "state and providers",
    "They decide where the state is, in which account is applied, and whose provider runs.",
    tuple(f"{folder}*{ending}" for folder in _FOLDERS for ending in (".tf", ".tf.json")),
)
_BLOCK = re.compile(r'\b(terraform|provider)\b[ \t]*("[^"\n]*"[ \t]*)?\{')
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True)
class Guarded:
    """A changed file that decides what a review says or an apply does."""

    path: Path
    what: str
    because: str

    def as_json(self) -> dict[str, str]:
        """For programs."""
        return {"file": self.path.as_posix(), "what": self.what}


def guarded(changes: Iterable[FileChange], place: Path, before: Reader, after: Reader) -> Iterator[Guarded]:
    """Of what changed, the files that decide, by ``before`` and ``after`` where their content says it."""
    for path in sorted({path for change in changes for path in (change.path, change.before) if path}):
        found = next((guard for guard in GUARDS if guard.holds(path, place)), None)
        if found is None and _TERRAFORM.holds(path, place):
            override = re.fullmatch(r"(.*_)?override\.tf(\.json)?", path.name)
            found = _TERRAFORM if override or _told(path, before(path)) != _told(path, after(path)) else None
        if found:
            yield Guarded(path, found.what, found.because)


def _told(path: Path, data: bytes | None) -> object:
    """What a file of Terraform says of state and providers, to be compared."""
    text = (data or b"").decode("utf-8", "surrogateescape")
    if path.suffix == ".json":
        try:
            read = json.loads(text or "{}")
            return [read.get("terraform"), read.get("provider")]
        except (ValueError, AttributeError, RecursionError):
            return text
    return [text[found.start() : _end(text, found.end())] for found in _BLOCK.finditer(text)]


def _end(text: str, start: int) -> int:
    """Where the block ends that is open at ``start``."""
    depth = 1
    for found in _BRACE.finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.end()
    return len(text)


def _matches(path: PurePosixPath, pattern: str) -> bool:
    if pattern.endswith("/"):
        start = PurePosixPath(pattern.strip("/"))
        return any(parent.match(start.as_posix()) and len(parent.parts) == len(start.parts) for parent in path.parents)
    if pattern.startswith("/"):
        inner = pattern.strip("/")
        return len(path.parts) == inner.count("/") + 1 and path.match(inner)
    return path.match(pattern)

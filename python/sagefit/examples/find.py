"""Which examples there are: the job files of ``examples/*/``, and what their comments say of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sagefit.errors import SagefitError
from sagefit.job.load import job_files
from sagefit.nearest import did_you_mean
from sagefit.paths import EXAMPLES

FAULTS = "faults.yaml"
_PLANNED_ONLY = "Planned only:"
_COMPARED = re.compile(r"^Compared with: (?P<job>[\w.-]+)\.yaml$")


@dataclass(frozen=True)
class Example:
    """A job file of an example. ``EXAMPLE/EXAMPLE.yaml`` is its main one, others beside it are variants."""

    path: Path

    @property
    def folder(self) -> str:
        """The example it belongs to."""
        return self.path.parent.name

    @property
    def job(self) -> str:
        """The name of the job."""
        return self.path.stem

    @property
    def name(self) -> str:
        """``EXAMPLE/JOB``, or ``EXAMPLE`` for the main job."""
        return self.folder if self.is_main else f"{self.folder}/{self.job}"

    @property
    def is_main(self) -> bool:
        """Whether it is the job that the example is named after."""
        return self.job == self.folder

    @cached_property
    def shows(self) -> str:
        """The first sentence of the comment at the top."""
        return re.split(r"(?<=\.)\s", " ".join(self._comments()), maxsplit=1)[0]

    @cached_property
    def planned_only(self) -> str:
        """Why the embedded cloud cannot run it, from a comment that begins with ``Planned only:``; empty if it can."""
        _, found, reason = " ".join(self._comments()).partition(_PLANNED_ONLY)
        return re.split(r"(?<=\.)\s", reason.strip(), maxsplit=1)[0] if found else ""

    @property
    def compared_with(self) -> str:
        """The name of the job that this one needs less memory than; empty where there is none."""
        found = [match["job"] for line in self._comments() if (match := _COMPARED.match(line))]
        return f"{self.folder}/{found[0]}" if found else ""

    def _comments(self) -> list[str]:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [line.lstrip("# ").strip() for line in lines if line.startswith("#")]


def all_examples(root: Path = EXAMPLES) -> list[Example]:
    """Every job file of every example: by example, its main job first."""
    files = [path for folder in sorted(root.iterdir()) if folder.is_dir() for path in job_files(folder)]
    found = [Example(path) for path in files if path.name != FAULTS]
    return sorted(found, key=lambda example: (example.folder, not example.is_main, example.job))


def faults_files(examples: Iterable[Example]) -> list[Path]:
    """The faults that the cloud gets for these examples: ``faults.yaml`` beside their job files."""
    files = {example.path.with_name(FAULTS) for example in examples}
    return sorted(path for path in files if path.is_file())


def chosen(names: Sequence[str], among: Sequence[Example]) -> list[Example]:
    """The examples that are named by example, by job or as ``EXAMPLE/JOB``; all of them without names.

    Raises SagefitError for a name that there is not.
    """
    known = {name for example in among for name in (example.folder, example.name, example.job)}
    for name in names:
        if name not in known:
            raise no_such("example", name, sorted(known))
    asked = set(names)
    return [example for example in among if not names or asked & {example.folder, example.name, example.job}]


def no_such(what: str, name: str, known: Sequence[str]) -> SagefitError:
    """The error about a name that is not among ``known``."""
    return SagefitError(f"no {what} {name!r}", hint=did_you_mean(name, known, f"there are: {', '.join(known)}"))

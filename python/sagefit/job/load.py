"""From a name or path to a checked job."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from sagefit.errors import SagefitError
from sagefit.job.complaints import complaints
from sagefit.job.limit_rules import limit_problems
from sagefit.job.model import OLDER_NAMES, Job
from sagefit.job.problem import Problem, refusal
from sagefit.job.processing import step_problems
from sagefit.job.rules import problems
from sagefit.job.source import read, text_of
from sagefit.job.upload_rules import upload_problems
from sagefit.nearest import did_you_mean
from sagefit.paths import JOBS, display

_SUFFIXES = (".yaml", ".yml")
# A job's name on a line of its own, as in nearly every file; YAML reads any other line that may be a name.
_PLAIN_NAME = re.compile(r"^name:[ \t]+([a-z0-9-]+)[ \t]*(?:#.*)?$", re.MULTILINE)
_OTHER_NAME = re.compile(r"""^(?:name|["'{?&!]|---)""", re.MULTILINE)


def job_files(folder: Path = JOBS) -> list[Path]:
    """The job files of ``folder``, sorted by name."""
    return sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES)


def job_names() -> list[str]:
    """The names of the jobs in ``jobs/``, without checking the files."""
    return [_name_of(path) for path in job_files()]


def load_job(
    reference: str | Path, names: JobNames | None = None, *, uploads: bool = True, text: str | None = None
) -> Job:
    """The job that ``reference`` names: a name in ``jobs/`` or the path of a YAML file.

    To load several jobs, pass the same ``names`` to every call: each folder is then read once. ``uploads=False`` skips
    the checks of code and local data, as for a job that is only watched, stopped or destroyed. ``text`` is read in
    place of what the file has, to see what another text would be.
    Raises SagefitError (exit code 2) that lists every problem with file, line, field, rule and knob.
    """
    path = _find(str(reference))
    data, lines = read(path, text)
    data.setdefault("name", path.stem)
    lines.rename(OLDER_NAMES, "attempts")
    try:
        job = Job.model_validate(data)
    except ValidationError as error:
        raise refusal(path, lines, complaints(error, data, lines)) from error
    job._path, job._lines = path.resolve(), lines
    found = [*problems(job), *limit_problems(job), *step_problems(job), *(upload_problems(job) if uploads else ())]
    twin = (names or JobNames()).twin(job)
    if twin:
        message = f"{job.name!r} is also the name of the job in {display(twin)}"
        found.append(Problem(("name",), message, "rename one of them"))
    if found:
        raise refusal(path, lines, found)
    return job


def _find(reference: str) -> Path:
    path = Path(reference)
    if path.suffix in _SUFFIXES or "/" in reference:
        if not path.is_file():
            raise SagefitError(f"no job file {reference}", hint="give a name in jobs/ or the path of a YAML file")
        return path
    for suffix in _SUFFIXES:
        if (JOBS / f"{reference}{suffix}").is_file():
            return JOBS / f"{reference}{suffix}"
    by_name = [file for file in job_files() if _name_of(file) == reference]
    if by_name:
        return by_name[0]
    known = job_names()
    hint = did_you_mean(reference, known, f"jobs here: {', '.join(known) or 'none'}")
    raise SagefitError(f"no job {reference!r} in {display(JOBS)}/", hint=hint)


def _name_of(path: Path) -> str:
    """The job's name in a file; the file's own name when the file has none or cannot be read."""
    try:
        text = text_of(path)
        if plain := _PLAIN_NAME.search(text):
            return plain[1]
        return str(read(path)[0].get("name", path.stem)) if _OTHER_NAME.search(text) else path.stem
    except (OSError, UnicodeDecodeError, SagefitError):
        return path.stem


class JobNames:
    """Which files give their jobs which names. Reads each folder once: many jobs of one folder share it."""

    def __init__(self) -> None:
        self._folders: dict[Path, dict[str, list[Path]]] = {}

    def twin(self, job: Job) -> Path | None:
        """Another job file of the same name beside this one or in ``jobs/``: they would share one state machine."""
        same = {*self._named(JOBS, job.name), *self._named(job.path.parent, job.name)}
        return next((path for path in sorted(same) if path.resolve() != job.path), None)

    def _named(self, folder: Path, name: str) -> list[Path]:
        if folder not in self._folders:
            names: dict[str, list[Path]] = {}
            for path in job_files(folder):
                names.setdefault(_name_of(path), []).append(path)
            self._folders[folder] = names
        return self._folders[folder].get(name, [])

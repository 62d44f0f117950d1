"""A new job from an example: its file goes to ``jobs/``, and all that it refers to on this machine beside it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from sagefit.errors import REFUSED, SagefitError
from sagefit.examples.find import Example, all_examples, no_such
from sagefit.job import job_names
from sagefit.job.key import Key
from sagefit.job.values import NAME_PATTERN
from sagefit.paths import JOBS, display

_MOST = 40  # characters of a job's name
# For an example's attempts, which last seconds: its line, or its part of a line.
_POLL_INTERVAL = re.compile(r"^ *poll_interval:.*\n|, *poll_interval: *\w+|\bpoll_interval: *\w+, *", re.MULTILINE)
_NOT_COPIED = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", ".DS_Store")


@dataclass(frozen=True)
class Copy:
    """A file or folder of the template, and its place in the new job, relative to the job file."""

    source: Path
    place: PurePosixPath


def templates() -> list[Example]:
    """The main jobs of the examples, by name."""
    return [example for example in all_examples() if example.is_main]


def template(name: str) -> Example:
    """The template of this name. Raises SagefitError where there is none."""
    by_name = {example.name: example for example in templates()}
    if name not in by_name:
        raise no_such("template", name, sorted(by_name))
    return by_name[name]


def create(name: str, example: Example, folder: Path = JOBS) -> list[Path]:
    """Write the job ``name`` in ``folder`` from a template; returns what was written.

    The text of the job file is kept with its comments; its paths are those of the new place (see ``adapted``). Raises
    SagefitError (exit code 4) when anything is in the way, which is left alone, and (2) for a name that none can have.
    """
    _check_name(name)
    path, beside = folder / f"{name}.yaml", folder / name
    there = [found for found in (path, path.with_suffix(".yml"), path.with_suffix(".tfvars"), beside) if found.exists()]
    if there or (folder == JOBS and name in job_names()):
        listed = ", ".join(map(display, there)) or f"a job of that name in {display(folder)}/"
        raise SagefitError(
            f"in the way: {listed}; nothing is overwritten", hint="choose another name", exit_code=REFUSED
        )
    text, copies = adapted(example, name)
    folder.mkdir(parents=True, exist_ok=True)
    for copy in copies:
        target = folder / copy.place
        target.parent.mkdir(parents=True, exist_ok=True)
        if copy.source.is_dir():
            shutil.copytree(copy.source, target, ignore=_NOT_COPIED, dirs_exist_ok=True)
        else:
            shutil.copyfile(copy.source, target)
    with path.open("x", encoding="utf-8") as file:  # last, so that a job file never refers to what is not there
        file.write(text)
    return [path, *(folder / copy.place for copy in copies)]


def adapted(example: Example, name: str) -> tuple[str, list[Copy]]:
    """The template's text with the paths of its new place, and what has to be copied there.

    Without its name, and without the interval of its attempts, which is too short for a job that trains for hours.
    """
    text = example.path.read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    copies, edits = [], []
    for field, node in _scalars(root, ()):
        start, end = node.start_mark.index, node.end_mark.index
        if field == ("name",):  # the file's name is the job's
            edits.append((text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1, ""))
        elif (source := _local(example, field, node.value)) is not None:
            place = _place(name, node.value)
            copies.append(Copy(source, place))
            edits.append((start, end, str(place)))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return _POLL_INTERVAL.sub("", text), list(dict.fromkeys(copies))


def _place(name: str, written: str) -> PurePosixPath:
    """``NAME/code`` for ``code``, and ``NAME/data/digits`` for ``../data/digits``."""
    return PurePosixPath(name, *(part for part in PurePosixPath(written).parts if part not in ("..", ".")))


def _local(example: Example, field: Key, written: str) -> Path | None:
    """What a value of the job file names on this machine; None for a value that is no path, or one elsewhere."""
    is_path = field[-1] in ("source_dir", "uri", "build") or field[-2:-1] == ("inputs",) or field == ("memory", "model")
    if not is_path or "://" in written:
        return None
    path = (example.path.parent / written).resolve()
    return path if path.exists() else None


def _scalars(node: yaml.Node | None, field: Key) -> Iterator[tuple[Key, yaml.ScalarNode]]:
    """The values of a document with the keys that lead to them."""
    if isinstance(node, yaml.ScalarNode):
        yield field, node
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _scalars(child, (*field, index))
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            yield from _scalars(child, (*field, key.value))


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > _MOST:
        raise SagefitError(
            f"{name!r} is no name of a job", hint=f"use up to {_MOST} lower-case letters, digits and single hyphens"
        )

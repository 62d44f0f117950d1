"""From a name or path to a checked job."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from sagefit.errors import SagefitError
from sagefit.job.limit_rules import limit_problems
from sagefit.job.limits import limits
from sagefit.job.model import Job
from sagefit.job.problem import Problem, refusal
from sagefit.job.processing import step_problems
from sagefit.job.rules import problems
from sagefit.job.source import Key, read, text_of
from sagefit.job.upload_rules import upload_problems
from sagefit.paths import JOBS, display

_SUFFIXES = (".yaml", ".yml")
# A job's name on a line of its own, as nearly every file has it; anything else that may be one goes through YAML.
_PLAIN_NAME = re.compile(r"^name:[ \t]+([a-z0-9-]+)[ \t]*(?:#.*)?$", re.MULTILINE)
_OTHER_NAME = re.compile(r"""^(?:name|["'{?&!]|---)""", re.MULTILINE)


def job_files(folder: Path = JOBS) -> list[Path]:
    """The job files of ``folder``, sorted by name."""
    return sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES)


def job_names() -> list[str]:
    """The names of the jobs in ``jobs/``, without checking the files."""
    return [_name_of(path) for path in job_files()]


def load_job(reference: str | Path, names: JobNames | None = None, *, uploads: bool = True) -> Job:
    """The job that ``reference`` names: a name in ``jobs/`` or the path of a YAML file.

    ``names`` is for those who load many: one object for all, and each folder is read once. With ``uploads=False`` the
    code and the local data are not looked at, as for a job that is only watched, stopped or destroyed.
    Raises SagefitError (exit code 2) that lists every problem with file, line, field, rule and knob.
    """
    path = _find(str(reference))
    data, lines = read(path)
    data.setdefault("name", path.stem)
    try:
        job = Job.model_validate(data)
    except ValidationError as error:
        raise refusal(path, lines, [Problem(*told) for told in _explain_all(error, data)]) from error
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
    near = difflib.get_close_matches(reference, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"jobs here: {', '.join(known) or 'none'}"
    raise SagefitError(f"no job {reference!r} in {display(JOBS)}/", hint=hint)


def _name_of(path: Path) -> str:
    """The name a file gives its job; the file's own name when it gives none or cannot be read."""
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


def _explain_all(error: ValidationError, data: dict[str, Any]) -> list[tuple[Key, str, str]]:
    """Every complaint once. Where a field may have several forms, only the form that the user tried counts."""
    found: dict[Key, tuple[Key, str, str]] = {}
    items = [(_real_field(item["loc"], data), item) for item in error.errors()]
    deeper = {field[:end] for field, _ in items for end in range(len(field))}
    tagged = {field for field, item in items if item["type"].startswith("union_tag")}
    empty = {field for field, item in items if item["type"] == "too_short"}
    for field, item in items:
        other_form = item["type"] in ("string_type", "literal_error", "int_type", "list_type") and (
            field in deeper or field in empty or (field in tagged and isinstance(item["input"], dict))
        )
        if not other_form:
            found.setdefault(field, _explain(field, item))
    return list(found.values())


def _explain(field: Key, item: Any) -> tuple[Key, str, str]:
    """One pydantic error as (field, rule, knob)."""
    kind, context, given = item["type"], item.get("ctx", {}), _shown(item["input"])
    if kind == "extra_forbidden":
        return field, "unknown key", _suggestion(field)
    if kind == "literal_error":
        expected = context["expected"].replace("True, False", "true, false")  # as YAML writes them
        return field, f"{given} is not one of {expected}", _near(str(item["input"]), expected)
    if kind == "union_tag_invalid":
        field = (*field, context["discriminator"].strip("'"))
        return (
            field,
            f"{context['tag']!r} is not one of {context['expected_tags']}",
            _near(context["tag"], context["expected_tags"]),
        )
    if kind == "string_type" and isinstance(item["input"], (int, float)):
        return field, f"must be text, and {given} is a {type(item['input']).__name__}", "put it in quotes"
    if kind == "string_pattern_mismatch":
        return field, f"{given} does not match {context['pattern']}", f"write {_words_of(context['pattern'])}"
    if kind in _TYPES:
        return field, f"must be {_TYPES[kind]}, and {given} is given", "correct it, or remove the line"
    rule, knob = _RULES.get(kind, (item["msg"], "correct it"))
    return field, rule.format(given=given, **context), knob


def _words_of(pattern: str) -> str:
    """What a text looks like that matches; patterns that are not of the table are those of names."""
    return next((row.words for row in limits().values() if row.pattern == pattern), limits()["name"].words)


def _near(given: str, expected: str) -> str:
    """The one of ``expected`` (pydantic's ``'a', 'b' or 'c'``) that was meant."""
    known = [word.strip("' ") for word in expected.replace(" or ", ",").split(",")]
    other = _OTHER_NAMES.get(given.lower())
    if other in known:
        return f"write {other}"
    near = difflib.get_close_matches(given, known, n=1)
    return f"did you mean {near[0]}?" if near else "choose one"


# What people call a value elsewhere: FSDP and DDP by their ZeRO stage.
_OTHER_NAMES = {"fsdp": "zero3", "fsdp2": "zero3", "ddp": "none"}
_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_RULES = {
    "missing": ("is required", "add it"),
    "string_too_long": ("has more than {max_length} characters", "shorten it"),
    "string_too_short": ("is empty", "fill it, or remove it"),
    "too_long": ("has more than {max_length} entries", "remove some"),
    "too_short": ("the list is empty", "fill it, or remove it"),
    "less_than_equal": ("{given} is above the limit, {le}", "lower it"),
    "greater_than_equal": ("{given} is below the least value, {ge}", "raise it"),
    "greater_than": ("{given} is not above {gt}", "raise it"),
    "finite_number": ("{given} is no finite number", "write a number"),
    "value_error": ("{error}", "correct it"),
    "union_tag_not_found": ("has no {discriminator}", "add it"),
}


def _shown(value: Any) -> str:
    """A value for a message; containers may hold what should not be repeated."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _real_field(location: tuple[int | str, ...], data: Any) -> Key:
    """Pydantic's location without the union branches it names in between."""
    field: list[int | str] = []
    for index, part in enumerate(location):
        last = index == len(location) - 1
        if isinstance(data, dict):
            if part in data:
                data = data[part]
            elif not last or not isinstance(part, str) or _is_branch(part):
                continue
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            continue
        field.append(part)
    return tuple(field)


def _is_branch(part: str) -> bool:
    """Whether pydantic names a type here: a class, as no field is called, or one of few words."""
    branches = ("str", "int", "float", "bool", "transformer", "convnet", "vision", "tabular", "measured")
    return part in branches or part[:1].isupper() or "[" in part


def _suggestion(field: Key) -> str:
    fields = _fields_at(field[:-1])
    near = difflib.get_close_matches(str(field[-1]), fields, n=1)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(fields)}"


def _fields_at(path: Key) -> list[str]:
    """The keys a job file may have at ``path``. Names that the user chose (inputs, tags) lead nowhere new."""
    models: list[type[BaseModel]] = [Job]
    for part in path:
        annotations = [model.model_fields[part].annotation for model in models if part in model.model_fields]
        models = [nested for annotation in annotations for nested in _models_in(annotation)] or models
    return sorted({field.alias or name for model in models for name, field in model.model_fields.items()})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models_in(inner)]

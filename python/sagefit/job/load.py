"""From a name or path to a checked job."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from sagefit.errors import SagefitError
from sagefit.job.model import Job
from sagefit.job.rules import problems
from sagefit.job.source import Key, Lines, line_of, read
from sagefit.paths import JOBS, display

_SUFFIXES = (".yaml", ".yml")
_MOST = 20


def job_files(folder: Path = JOBS) -> list[Path]:
    """The job files of ``folder``, sorted by name."""
    return sorted(path for path in folder.glob("*") if path.suffix in _SUFFIXES)


def job_names() -> list[str]:
    """The names of the jobs in ``jobs/``, without checking the files."""
    return [_name_of(path) for path in job_files()]


def load_job(reference: str) -> Job:
    """The job that ``reference`` names: a name in ``jobs/`` or a path to a YAML file.

    Raises SagefitError that lists every problem with file, line, field, rule and knob.
    """
    path = _find(reference)
    data, lines = read(path)
    data.setdefault("name", path.stem)
    try:
        job = Job.model_validate(data)
    except ValidationError as error:
        raise _refusal(path, lines, _explain_all(error, data)) from error
    job._path = path.resolve()
    found = [(problem.field, problem.message, problem.knob) for problem in problems(job)]
    twin = _twin(job)
    if twin:
        found.append((("name",), f"{job.name!r} is also the name of the job in {display(twin)}", "rename one of them"))
    if found:
        raise _refusal(path, lines, found)
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
        data, _ = read(path)
    except SagefitError:
        return path.stem
    return str(data.get("name", path.stem))


def _twin(job: Job) -> Path | None:
    """Another job file of the same name beside this one or in ``jobs/``: they would share one state machine."""
    beside = {*job_files(), *job_files(job.path.parent)}
    return next((p for p in sorted(beside) if p.resolve() != job.path and _name_of(p) == job.name), None)


def _refusal(path: Path, lines: Lines, found: list[tuple[Key, str, str]]) -> SagefitError:
    rows = []
    for field, message, knob in found[:_MOST]:
        line = line_of(lines, field)
        where = f"{display(path)}:{line}" if line else display(path)
        rows.append(f"{where}: {_dotted(field)}: {message}\n  {knob}")
    if len(found) > _MOST:
        rows.append(f"... and {len(found) - _MOST} more")
    return SagefitError("\n".join(rows))


def _dotted(field: Key) -> str:
    text = ""
    for part in field:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the file"


def _explain_all(error: ValidationError, data: dict[str, Any]) -> list[tuple[Key, str, str]]:
    """Every complaint once. Where a field may have several forms, only the form that the user tried counts."""
    found: dict[Key, tuple[Key, str, str]] = {}
    items = [(_real_field(item["loc"], data), item) for item in error.errors()]
    deeper = {field[:end] for field, _ in items for end in range(len(field))}
    for field, item in items:
        other_form = field in deeper and item["type"] in ("string_type", "literal_error", "int_type", "list_type")
        if not other_form:
            found.setdefault(field, _explain(field, item))
    return list(found.values())


def _explain(field: Key, item: Any) -> tuple[Key, str, str]:
    """One pydantic error as (field, rule, knob)."""
    kind, context, given = item["type"], item.get("ctx", {}), _shown(item["input"])
    if kind == "extra_forbidden":
        return field, "unknown key", _suggestion(field)
    if kind == "literal_error":
        known = [word.strip("' ") for word in context["expected"].replace(" or ", ",").split(",")]
        near = difflib.get_close_matches(str(item["input"]), known, n=1)
        return (
            field,
            f"{given} is not one of {context['expected']}",
            f"did you mean {near[0]}?" if near else "choose one",
        )
    if kind == "string_type" and isinstance(item["input"], (int, float)):
        return field, f"must be text, and {given} is a {type(item['input']).__name__}", "put it in quotes"
    if kind in _TYPES:
        return field, f"must be {_TYPES[kind]}, and {given} is given", "correct it, or remove the line"
    rule, knob = _RULES.get(kind, (item["msg"], "correct it"))
    return field, rule.format(given=given, **context), knob


_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_RULES = {
    "missing": ("is required", "add it"),
    "string_pattern_mismatch": (
        "{given} does not match {pattern}",
        "use lower-case letters, digits and single hyphens",
    ),
    "string_too_long": ("has more than {max_length} characters", "shorten it"),
    "string_too_short": ("is empty", "fill it, or remove it"),
    "too_long": ("has more than {max_length} entries", "remove some"),
    "too_short": ("is empty", "fill it, or remove it"),
    "less_than_equal": ("{given} is above the limit, {le}", "lower it"),
    "greater_than_equal": ("{given} is below the least value, {ge}", "raise it"),
    "greater_than": ("{given} is not above {gt}", "raise it"),
    "finite_number": ("{given} is no finite number", "write a number"),
    "value_error": ("{error}", "correct it"),
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
    return (
        part in ("str", "int", "float", "bool", "Channel", "Schedule", "transformer", "convnet", "measured")
        or "[" in part
    )


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
    return sorted({name for model in models for name in model.model_fields})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models_in(inner)]

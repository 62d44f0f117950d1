"""``docs/api.md``: what the package promises, from its docstrings."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import sagefit
from sagefit.memory import Estimate, Prediction
from sagefit.planning import PlannedAttempt
from sagefit.planning.candidate import Candidate
from sagefit.reviewing import Finding
from sagefit.running import AttemptRecord

GROUPS = {
    "A job and its plan": ("load_job", "Job", "plan", "JobPlan"),
    "Runs": ("start", "stop", "runs", "read_run", "Run", "RunRecord"),
    "Failures": ("diagnose", "Diagnosis"),
    "Plans of Terraform": ("review", "Review"),
    "Errors": ("SagefitError",),
}
#: What comes back from those above. They are not made by hand.
PARTS: tuple[type, ...] = (PlannedAttempt, Candidate, Prediction, Estimate, AttemptRecord, Finding)
#: The fields of a job file have a page of their own, and pydantic's methods have one elsewhere.
JOB = ("path", "tfvars", "reference", "written_attempts", "line")
_MADE = "<!-- made from the docstrings of python/sagefit by make docs -->"


def api() -> str:
    """The page."""
    names = [name for group in GROUPS.values() for name in group]
    if missing := sorted({*sagefit.__all__} ^ {*names}):
        raise SystemExit(f"docs/api.py: {', '.join(missing)} stands in one of sagefit.__all__ and GROUPS only")
    parts = ["# Sagefit from Python", _MADE, *_text(sagefit)]
    for title, group in GROUPS.items():
        parts += [f"## {title}", *(part for name in group for part in _entry(name, getattr(sagefit, name)))]
    parts += ["## What comes back", "Objects of these types are parts of those above; nobody makes them by hand."]
    parts += [part for kind in PARTS for part in _entry(kind.__name__, kind)]
    parts += ["### Other types", "What the signatures above name as well.", _others([*map(_found, names), *PARTS])]
    return "\n\n".join(parts) + "\n"


def _found(name: str) -> Any:
    return getattr(sagefit, name)


def _others(shown: list[Any]) -> str:
    """A row for each type that a signature names and that has no entry of its own."""
    others = {pair for each in shown for pair in _named(each)} - {(each.__name__, each.__module__) for each in shown}
    times = Counter(name for name, _ in others)
    rows = (
        f"| `{name}`{f' of `{_room(module)}`' if times[name] > 1 else ''} | {_said(name, module)} |"
        for name, module in sorted(others)
    )
    return "\n".join(("| type | what it is | fields |", "|---|---|---|", *rows))


def _named(found: Any) -> Iterator[tuple[str, str]]:
    """The package's own types that the signatures of a function, or of a type's fields and members, name: each with
    the module that writes it."""
    functions = [function for _, function in _functions(found)] if inspect.isclass(found) else [found]
    signatures = [inspect.signature(function) for function in functions]
    annotations = [each.return_annotation for each in signatures]
    annotations += [taken.annotation for each in signatures for taken in each.parameters.values()]
    annotations += _fields(found).values() if inspect.isclass(found) else ()
    for name in re.findall(r"\b[A-Z]\w+", " ".join(map(str, annotations))):
        if (home := _home(name, found.__module__)).startswith("sagefit"):
            yield name, home


def _home(name: str, module: str) -> str:
    """The module that a name in a module comes from, also where only type checkers import it."""
    for node in ast.walk(_parsed(module)):
        if isinstance(node, ast.ImportFrom) and name in (alias.asname or alias.name for alias in node.names):
            return _home(name, str(node.module))
    return module if hasattr(importlib.import_module(module), name) else ""


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _said(name: str, module: str) -> str:
    """Two cells: the first sentence of a class and its fields, or what an alias stands for."""
    found = getattr(importlib.import_module(module), name)
    if inspect.isclass(found):
        sentence = re.split(r"(?<=\.)\s", " ".join(inspect.cleandoc(found.__doc__ or "").split()))[0]
        fields = _fields(found) or getattr(found, "model_fields", {})
        return f"{_cell(_quoted(sentence))} | {', '.join(f'`{field}`' for field in fields)}"
    written = next(
        node.value
        for node in _parsed(module).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    )
    return f"`{_cell(_annotated(ast.unparse(written)))}` | "


def _entry(name: str, found: Any) -> Iterator[str]:
    yield f"### `{name}`"
    if not inspect.isclass(found):
        yield f"```python\ndef {_call(name, found, wide=False)} -> {_returned(found)}: ...\n```"
    yield from _text(found)
    if not inspect.isclass(found):
        return
    fields = _fields(found)
    if fields:
        yield "\n".join(("```python", *(f"{name}: {_annotated(kind)}" for name, kind in fields.items()), "```"))
    if rows := list(_members(found)):
        yield "\n".join(("| | gives | |", "|---|---|---|", *rows))


def _fields(kind: type) -> dict[str, Any]:
    """The fields of a dataclass or a named tuple, with their types as they are written."""
    if issubclass(kind, tuple):
        return {name: getattr(found, "__forward_arg__", found) for name, found in inspect.get_annotations(kind).items()}
    found = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name: field.type for field in found if field.name[0] != "_"}


def _members(kind: type) -> Iterator[str]:
    """A row for each property and method: what it gives, and its docstring."""
    for shown, function in _functions(kind):
        said = _quoted(" ".join(inspect.cleandoc(function.__doc__ or "").split()))
        yield f"| `{_cell(shown)}` | `{_cell(_returned(function))}` | {_cell(said)} |"


def _functions(kind: type) -> Iterator[tuple[str, Any]]:
    """How each property and method is written, and its function."""
    for name, member in vars(kind).items():
        if name.startswith("_") or (kind is sagefit.Job and name not in JOB):
            continue
        if isinstance(member, property | cached_property):
            yield name, member.fget if isinstance(member, property) else member.func
        elif inspect.isfunction(member):
            yield _call(name, member), member


def _call(name: str, function: Callable[..., Any], *, wide: bool = True) -> str:
    """How it is called; over several lines where it is long and may be."""
    words: list[str] = []
    star = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            words, star = [*words, "*"], True
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        words.append(f"{parameter.name}: {parameter.annotation}{default}")
    line = f"{name}({', '.join(words)})"
    return line if wide or len(line) <= 90 else "\n".join((f"{name}(", *(f"    {word}," for word in words), ")"))


def _annotated(annotation: Any) -> str:
    return str(annotation).replace("'", '"')  # as ruff formats the blocks of a page


def _returned(function: Callable[..., Any]) -> str:
    return str(inspect.signature(function).return_annotation)


def _text(found: Any) -> Iterator[str]:
    """The docstring as Markdown: names in one kind of quotes, examples as blocks."""
    for block in inspect.cleandoc(found.__doc__).split("\n\n"):
        if block.startswith(">>> "):
            yield f"```pycon\n{block}\n```"
        elif block.startswith("    "):
            yield f"```python\n{textwrap.dedent(block)}\n```"
        else:
            yield textwrap.fill(_quoted(" ".join(block.split())), 120, break_long_words=False, break_on_hyphens=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _quoted(text: str) -> str:
    return re.sub(r"``(.+?)``", r"`\1`", text)

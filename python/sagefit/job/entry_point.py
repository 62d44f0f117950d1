"""What the entry point of a job says: which arguments are switches, the default of others, and what its calls are told.

The script is read and never run: ``add_argument`` of argparse with literal names and values, and the values that
`sagefit.job.script_calls` follows to the calls of libraries.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagefit.job.following.files import Files, Looked, looked
from sagefit.job.names import plain
from sagefit.job.script_calls import HEARD, Calls, calls_of

if TYPE_CHECKING:
    from sagefit.job.model import Job

_LONGEST = 1_000_000
"""Bytes of a script; long ones have a tenth."""
_SWITCHES = ("store_true", "store_false", "store_const", "count")


@dataclass(frozen=True)
class Script:
    """Arguments of a script, by plain name.

    switches: the line of each argument that takes no value.
    defaults: the value of each other that is not given, and False for a switch that turns something on.
    """

    switches: Mapping[str, int] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)


def script_of(job: Job) -> Script:
    """What the entry point says; nothing where it is no Python script that can be read."""
    place = _place(job)
    return _read(*place) if place else Script()


def calls_in(job: Job, given: Mapping[str, object]) -> Calls:
    """What the calls of the entry point say where it gets ``given``: hyperparameters and arguments, by plain name."""
    place = _place(job)
    if place is None or not _calls(*place):
        return Calls({})
    asked = (place, json.dumps(given, default=str), json.dumps(job.environment))
    calls, read = _followed(*asked)
    if read and any(looked(each.path) != each for each in read):  # a file of the code has changed in between
        _followed.cache_clear()
        calls, _ = _followed(*asked)
    return calls


def _place(job: Job) -> tuple[str, str, int, int] | None:
    """The folder, name, time and size of a Python script that is there."""
    if job.code is None or not job.code.entry_point.endswith(".py"):
        return None
    folder = _folder(job.path, job.code.source_dir)
    try:
        # Planning a job asks this hundreds of times, and pathlib takes ten times as long.
        found = os.stat(f"{folder}/{job.code.entry_point}")  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return folder, job.code.entry_point, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4096)
def _folder(job_file: Path, source_dir: str) -> str:
    return str(job_file.parent / source_dir)


@lru_cache(maxsize=64)
def _tree(source_dir: str, entry_point: str, _changed: int, size: int) -> tuple[ast.Module, bool] | None:
    """The script, and whether it has words of calls that say something."""
    folder = Path(source_dir).resolve()
    path = (folder / entry_point).resolve()
    if size > _LONGEST or not path.is_relative_to(folder) or not path.is_file():
        return None
    content = path.read_bytes()
    try:
        tree = ast.parse(content)
        return tree, any(word in content for word in HEARD) or any(_is_own(folder, name) for name in _imported(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=256)
def _calls(*place: Any) -> bool:
    found = _tree(*place)
    return found is not None and found[1]


def _imported(tree: ast.Module) -> set[str]:
    """The first parts of the names of what a script imports."""
    plainly = {each.name for node in tree.body if isinstance(node, ast.Import) for each in node.names}
    return {name.partition(".")[0] for name in plainly} | {
        (node.module or "").partition(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)
    }


def _is_own(folder: Path, name: str) -> bool:
    return bool(name) and ((folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file())


@lru_cache(maxsize=1024)
def _followed(place: tuple[str, str, int, int], given: str, environment: str) -> tuple[Calls, tuple[Looked, ...]]:
    found, files = _tree(*place), Files(place[0])
    calls = calls_of(found[0], json.loads(given), json.loads(environment), files, place[1]) if found else Calls({})
    return calls, tuple(files.looked)


@lru_cache(maxsize=256)
def _read(*place: Any) -> Script:
    found = _tree(*place)
    if found is None:
        return Script()
    switches: dict[str, int] = {}
    defaults: dict[str, object] = {}
    twice: set[str] = set()
    for node in ast.walk(found[0]):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "add_argument":
            continue
        words = [str(_literal(each, "")) for each in node.args]
        names = [plain(word[2:]) for word in words if word.startswith("--") and word[2:]]
        options = {each.arg: each.value for each in node.keywords if each.arg}
        action = _literal(options.get("action"), "")
        default = _literal(options.get("default"), None)
        if action == "store_true" and default is None:
            default = False
        for name in names:
            if name in switches or name in defaults:
                twice.add(name)
            if action in _SWITCHES:
                switches[name] = node.lineno
            if default is not None and action != "store_false":
                defaults[name] = default
    return Script(switches, {name: value for name, value in defaults.items() if name not in twice})


def _literal(node: ast.expr | None, other: object) -> object:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, bool | int | float | str):
        return other
    return node.value

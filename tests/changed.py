"""``--changed`` runs what a change can reach, nearest first, for about a minute.

A change is what differs from the commit where the branch left ``main`` (``--since`` names another), committed or not.

What it reaches is read from the files, without running any. A file uses another one if

* it imports it, or starts it with ``-m``;
* it is a test, and the other one a ``conftest.py`` above it, or a plugin that such a one names;
* it names it, or its folder, in a text: ``ROOT / "modules"`` uses all modules, ``source = "../iam-role"`` one;
* the other one holds data and lies beside or below it.

That takes in too much rather than too little. So what needs fewer steps comes first, within a file the cases whose
names speak of the change, until the seconds that ``durations.json`` knows fill ``SECONDS`` of each processor. What is
left over is counted at the end; ``make test`` runs it.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import levels

SECONDS = 45.0  # of each process; a session takes some more to begin and to end
_UNKNOWN = 0.05  # seconds of a test that durations.json does not name
_MAIN = ("origin/main", "main")
_SOURCES = ("python", "tests")  # folders from which modules are imported
_WORD, _PATH = re.compile(r"[\w.-]+"), re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_LONGEST = 300  # characters of a text that may be a name
_SHOWN = 6  # names of files
_KEY = "changed"
_READ = {".tf", ".hcl"}  # texts that name files, beside Python


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this file."""
    group = parser.getgroup("levels")
    group.addoption("--changed", action="store_true", help="run what a change can reach, nearest first, for a minute")
    group.addoption("--since", metavar="COMMIT", help="what --changed compares with, not where main was left")


@dataclass
class Change:
    """What has changed, and what of the tests that it reaches was chosen."""

    files: list[str]
    steps: dict[str, int]  # to each file that is reached
    ran: int = 0
    reached: int = 0
    over: list[str] = field(default_factory=list)  # how many were left out, by file, the nearest first


_CHANGE = pytest.StashKey[Change]()


def pytest_configure(config: pytest.Config) -> None:
    """Find out what has changed; processes of pytest-xdist are told."""
    config.option.changed |= config.option.since is not None
    if config.option.changed:
        told = getattr(config, "workerinput", {}).get(_KEY)
        config.stash[_CHANGE] = Change(**told) if told else _change(config.rootpath, config.option.since)


def _change(root: Path, since: str | None) -> Change:
    files = changed_files(root, since)
    return Change(files, steps(files, users(root, files)))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist."""
    if change := node.config.stash.get(_CHANGE, None):
        node.workerinput[_KEY] = asdict(change)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear what a process of pytest-xdist has chosen: all of them choose the same."""
    if told := getattr(node, "workeroutput", {}).get(_KEY):
        node.config.stash[_CHANGE] = Change(**told)


def changed_files(root: Path, since: str | None = None) -> list[str]:
    """The files of a checkout that differ from a commit, or are new and not ignored.

    Raises pytest.UsageError where Git cannot say.
    """
    known = _git(root, "for-each-ref", "--format=%(refname:short)").split()
    before = since or next((name for name in _MAIN if name in known), "HEAD")
    base = _git(root, "merge-base", before, "HEAD").strip()
    differ = _git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", base, "--", ".")
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted(filter(None, f"{differ}{new}".split("\0")))


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip()
        raise pytest.UsageError(f"--changed asks Git what has changed, and it says: {said}") from error
    return done.stdout


def steps(changed: Iterable[str], by: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """How many uses lie between a change and each file that it reaches; the changed files have none."""
    found = dict.fromkeys(changed, 0)
    edge, distance = set(found), 0
    while edge:
        distance += 1
        edge = {user for name in edge for user in by.get(name, ())} - found.keys()
        found |= dict.fromkeys(edge, distance)
    return found


def listed(root: Path) -> list[str]:
    """The files of a checkout, those included that are new and not ignored."""
    return sorted(filter(None, _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0")))


def users(root: Path, more: Iterable[str] = ()) -> dict[str, set[str]]:
    """The files that use each file of a checkout; ``more`` files may be gone by now."""
    files = sorted({*listed(root), *more})
    modules = {_module(name): name for name in files if name.endswith(".py") and name.startswith(_SOURCES)}
    named = _Named(files)
    found: dict[str, set[str]] = defaultdict(set)
    for name in files:
        for used in _uses(root / name, name, modules, named):
            found[used].add(name)
        if not name.endswith(".py"):  # data is used by what lies beside it, or above
            found[name].update(named.beside(name))
    return found


def _uses(file: Path, name: str, modules: dict[str, str], named: _Named) -> Iterator[str]:
    path = PurePosixPath(name)
    try:
        text = file.read_text(encoding="utf-8") if path.suffix in {".py", *_READ} else ""
        nodes = list(ast.walk(ast.parse(text))) if path.suffix == ".py" else []
    except (OSError, ValueError, SyntaxError):  # it is gone, no text, or no Python, as where it is to be refused
        return
    yield from _imports(nodes, name, modules)
    yield from named.by(_texts(nodes) if nodes else re.findall(r'"([^"\n]*)"', text))
    if _is_test(path):
        yield from (str(folder / "conftest.py") for folder in path.parents)


def _is_test(path: PurePosixPath) -> bool:
    return path.suffix == ".py" and path.name.startswith("test_")


def _module(name: str) -> str:
    words = PurePosixPath(name).with_suffix("").parts[1:]
    return ".".join(words[:-1] if words and words[-1] == "__init__" else words)


def _imports(nodes: list[ast.AST], name: str, modules: dict[str, str]) -> Iterator[str]:
    """Files of the modules that a file imports, that it starts with ``-m``, or that are plugins of its tests."""
    for node in nodes:
        wanted: list[str] = []
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = PurePosixPath(name).parts[1:][: -node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            wanted = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, (ast.List, ast.Tuple)):
            words = [item.value if isinstance(item, ast.Constant) else None for item in node.elts]
            started = [str(word) for flag, word in pairwise(words) if flag == "-m" and word]
            wanted = [*started, *(f"{word}.__main__" for word in started)]
            if name.endswith("conftest.py"):
                wanted += [word for word in words if isinstance(word, str)]
        for module in wanted:
            parts = module.split(".")
            packages = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
            yield from (modules[package] for package in packages if package in modules)


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    """The texts of a file that may be names: not those that nothing is done with."""
    unused = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    inner = {id(node.left) for node in nodes if isinstance(node, ast.BinOp)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in unused and len(node.value) <= _LONGEST:
                yield node.value
        elif isinstance(node, ast.BinOp) and id(node) not in inner:
            yield "/".join(_segments(node))


def _segments(node: ast.expr) -> list[str]:
    """The segments of a path at the end of ``FOLDER / "a" / "b"``."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant)):
        return []
    return [*_segments(node.left), str(node.right.value)]


class _Named:
    """Files by what names them: their paths or the ends of these, and folders that no other folder is called after."""

    def __init__(self, files: list[str]) -> None:
        paths = [path for path in map(PurePosixPath, files) if not _is_test(path)]  # who names a test only tells of it
        places = {place for path in paths for place in (path, *path.parents) if place.name}
        often = Counter(place.name for place in places if place not in set(paths))
        called: dict[PurePosixPath, set[str]] = defaultdict(set)
        for place in places:
            called[place] = {"/".join(place.parts[start:]) for start in range(len(place.parts) - 1)}
            if often[place.name] <= 1 or len(place.parts) == 1:
                called[place].add(place.name)
        self._files: dict[str, set[str]] = defaultdict(set)
        self._python: dict[PurePosixPath, list[str]] = defaultdict(list)
        for path in paths:
            is_module = path.suffix == ".py" and path.parts[0] in _SOURCES
            if is_module:
                self._python[path.parent].append(str(path))
            for place in (path, *path.parents):
                # Modules are imported: a single word is mostly the name of something else.
                for name in called[place]:
                    if "/" in name or not is_module:
                        self._files[name].add(str(path))
            if not is_module:
                self._files[path.name].add(str(path))

    def by(self, texts: Iterable[str]) -> set[str]:
        """The files that are named."""
        said = {re.sub(r"^(\.\.?/)+", "", path) for text in texts for path in _PATH.findall(text)}
        return {file for name in said & self._files.keys() for file in self._files[name]}

    def beside(self, name: str) -> list[str]:
        """The Python files of the nearest folder that has some."""
        folders = PurePosixPath(name).parents if name.startswith(_SOURCES) else ()
        return next((self._python[folder] for folder in folders if self._python[folder]), [])


def words(changed: Iterable[str]) -> set[str]:
    """What the case of a test may say of the changed files: their names, and those of their folders."""
    paths = [PurePosixPath(name) for name in changed]
    return {word for path in paths for word in (path.name, path.stem, *path.parts[1:-1])}


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files that are not reached need not even be imported."""
    change = config.stash.get(_CHANGE, None)
    left_out = change and collection_path.suffix and _place(collection_path, config) not in change.steps
    return True if left_out else None


def _place(path: Path, config: pytest.Config) -> str:
    return Path(os.path.relpath(path, config.rootpath)).as_posix()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the nearest tests that fill the time."""
    change = config.stash.get(_CHANGE, None)
    if change is None:
        return
    changed = words(change.files)
    reached = [item for item in items if levels.is_of(item, config.option.level)]
    known, sizes = levels.durations(), Counter(map(levels.scope, reached))

    def takes(item: pytest.Item) -> float:
        scope = levels.scope(item)
        return known[scope] / sizes[scope] if scope in known else _UNKNOWN

    def far(item: pytest.Item) -> tuple[int, bool, float]:
        place = _place(item.path, config)
        distance = change.steps.get(place, 0)
        case = set(_WORD.findall(item.name.partition("[")[2]))
        in_its_room = changed & {*PurePosixPath(place).parts[1:-1]}
        return min(distance, 1) if in_its_room else distance, not case & changed, takes(item)

    seconds = SECONDS * getattr(config, "workerinput", {}).get("workercount", 1)
    kept: set[pytest.Item] = set()
    over: Counter[str] = Counter()
    for item in sorted(reached, key=far):
        if takes(item) <= seconds:
            kept.add(item)
            seconds -= takes(item)
        else:
            over[_place(item.path, config)] += 1
    change.over = [f"{count} of {file}" for file, count in over.items()]
    change.ran, change.reached = len(kept), len(reached)
    getattr(config, "workeroutput", {})[_KEY] = asdict(change)
    if left := [item for item in items if item not in kept]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item in kept]


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what has changed."""
    change = config.stash.get(_CHANGE, None)
    return f"changed: {_few(change.files) or 'nothing'}" if change else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how much was left over."""
    if change := config.stash.get(_CHANGE, None):
        terminalreporter.write_line(f"changed: {change.ran} of the {change.reached} tests that the change reaches")
        if change.over:
            terminalreporter.write_line(f"left out, the nearest first: {_few(change.over)}")


def _few(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A change that reaches no test is no failure."""
    if session.config.option.changed and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK

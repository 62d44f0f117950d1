"""Tests that show the same again while some files do not change run in the level ``full`` alone.

``@pytest.mark.of_files("python/sagefit/memory", "docs/accuracy.md")`` says which files and folders decide what a test
shows; ``"!path"`` leaves out a part of them. ``unchanged.json`` has the digest of these files, and of the versions of
Python and Terraform, with which the test last passed. As long as the digest is the same, the levels below ``full``
leave the test out. ``--write-proven`` keeps the digests of the tests that pass:
``make test ARGS="--level usual -m of_files --write-proven"`` runs those that have changed, and no others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path

import pytest

from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_version

_KEPT = "tests/unchanged.json"
_MARK = "of_files"
_LONGEST = 160  # characters of a name
_TERRAFORMS = (".tf", ".hcl")
_PASSED: dict[str, list[str]] = {}  # tests, and the files that decide


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of this file."""
    told = "keep the digests of what passes, so that it is not run again while its files are unchanged"
    parser.getgroup("levels").addoption("--write-proven", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line("markers", "of_files(*paths): shows the same while these files do not change")


def files(paths: Iterable[str], root: Path) -> list[Path]:
    """The files that some paths, folders and patterns of a checkout stand for. Raises ValueError where one has none.

    A path after a "!" takes away from those before it. Hidden files in folders do not count, nor what Python compiles:
    what runs here leaves both behind.
    """
    found: set[Path] = set()
    for asked in paths:
        path = asked.removeprefix("!")
        chosen = {at for place in root.glob(path) for at in ([place] if place.is_file() else _below(place))}
        if not chosen:
            raise ValueError(f"of_files: {path} is no file of the checkout")
        found = found - chosen if path != asked else found | chosen
    return sorted(found)


def _below(folder: Path) -> list[Path]:
    found = ((at, at.relative_to(folder).parts) for at in folder.rglob("*") if at.is_file())
    return [at for at, parts in found if not any(part.startswith(".") or part == "__pycache__" for part in parts)]


def digest(paths: Iterable[str], root: Path) -> str:
    """A digest of these files' names and contents, and of the versions of what reads them: Python, and Terraform."""
    found = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    decisive = files(paths, root)
    if any(file.suffix in _TERRAFORMS for file in decisive):
        found.update(str(terraform_version(terraform_binary(home()))).encode())
    for file in decisive:
        found.update(f"{file.relative_to(root)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def _name(nodeid: str) -> str:
    """Without the group that pytest-xdist writes behind it; what is long ends with a digest."""
    name = re.sub(r"@[^\]@]*$", "", nodeid)
    whole = hashlib.sha256(name.encode()).hexdigest()
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}... {whole[:16]}"


def _kept(root: Path) -> dict[str, str]:
    kept = root / _KEPT
    return dict(json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else {}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Leave out what was shown of the same files, when the levels have seen all tests: it may be a witness."""
    yield
    kept = _kept(config.rootpath)
    now = cache(lambda paths: digest(paths, config.rootpath))  # of all tests that the same files decide
    left_out = set()
    for item in items:
        if marker := item.get_closest_marker(_MARK):
            # A process of pytest-xdist sends it with the report.
            item.user_properties.append((_MARK, list(marker.args)))
            if config.option.level != "full" and kept.get(_name(item.nodeid)) == now(marker.args):
                left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what passed."""
    decided = dict(report.user_properties).get(_MARK)
    if report.when == "call" and report.passed and isinstance(decided, list):
        _PASSED[_name(report.nodeid)] = decided


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the digests where that is asked for."""
    if config.option.write_proven and "PYTEST_XDIST_WORKER" not in os.environ:
        root = config.rootpath
        kept = _kept(root) | {test: digest(decided, root) for test, decided in _PASSED.items()}
        (root / _KEPT).write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")

"""The house: who may import whom is held by `make lint`; here is that names lead where they seem to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sagefit.paths import ROOT

HOUSE = ROOT / "python" / "sagefit"


def test_no_package_gives_another_thing_the_name_of_its_module() -> None:
    """``import sagefit.memory.predict as m`` would give a function, and a test could replace nothing in the file."""
    hidden = [
        f"{package.relative_to(ROOT)} hides {name}.py"
        for package in sorted(HOUSE.rglob("__init__.py"))
        for name in sorted(set(_given(package)) & set(_modules(package.parent)))
    ]
    assert not hidden


def test_a_hidden_module_is_noticed(tmp_path: Path) -> None:
    package = tmp_path / "__init__.py"
    package.write_text("from sagefit.x import one, two as three\nfrom sagefit.y import four\n\ndef five(): ...\n")
    assert set(_given(package)) == {"one", "three", "four", "five"}


def _modules(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            yield path.stem


def _given(package: Path) -> Iterator[str]:
    """What is found under a name in a package and is not the module of that name."""
    here = ".".join(package.parent.relative_to(ROOT / "python").parts) if package.is_relative_to(ROOT) else ""
    for node in ast.parse(package.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module != here:
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_the_page_names_every_room_from_the_ground_up() -> None:
    """The rooms are those of the floors that `make lint` holds; what a room imports stands above it."""
    floors = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("layers = [")[2].partition("]")[0]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| room in `python/sagefit/`")[2].partition("\n\n")[0]
    told = [
        name.strip("`/") for row in table.splitlines()[2:] for name in re.findall(r"`[a-z_]+/?`", row.split("|")[1])
    ]
    assert sorted(told) == sorted(set(re.findall(r"\w+", floors)) - {"__main__"})
    below = {room: sorted(_imports(room) & set(told[told.index(room) + 1 :])) for room in told}
    assert not {room: late for room, late in below.items() if late}


def _imports(room: str) -> set[str]:
    files = [HOUSE / f"{room}.py"] if (HOUSE / f"{room}.py").exists() else sorted((HOUSE / room).rglob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {found for text in texts for found in re.findall(r"^\s*from sagefit\.(\w+)", text, re.MULTILINE)}

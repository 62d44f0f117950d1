"""The package as others import it: what it promises is there, is typed and documented, and loads nothing too early."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import sagefit
from sagefit.paths import ROOT

HEAVY = ("boto3", "botocore", "jinja2", "moto", "pydantic", "rich", "typer")


def test_importing_it_loads_nothing_heavy() -> None:
    code = f"import sys, sagefit; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_promised_is_there_and_nothing_else() -> None:
    assert dir(sagefit) == sorted([*sagefit.__all__, "__version__"])
    for name in sagefit.__all__:
        assert callable(getattr(sagefit, name))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sagefit.nothing  # type: ignore[attr-defined]


def test_no_room_has_the_name_of_something_promised() -> None:
    """A room that is imported would take the name's place."""
    rooms = {found.name for found in pkgutil.iter_modules(sagefit.__path__)}
    assert rooms.isdisjoint(sagefit.__all__)


@pytest.mark.parametrize("name", sagefit.__all__)
def test_what_is_promised_is_documented_and_typed(name: str) -> None:
    found = getattr(sagefit, name)
    assert inspect.getdoc(found)
    functions = [found] if inspect.isfunction(found) else []
    for function in functions:
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty
        assert all(each.annotation is not each.empty for each in signature.parameters.values())
        if name != "diagnose":
            assert "Raises SagefitError" in (inspect.getdoc(function) or "")


def modules_with_examples() -> list[str]:
    files = (path for path in (ROOT / "python").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    return sorted(
        ".".join(path.relative_to(ROOT / "python").with_suffix("").parts).removesuffix(".__init__") for path in files
    )


@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings_give_what_they_say(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    tried = doctest.testmod(importlib.import_module(module))
    assert tried.attempted
    assert not tried.failed

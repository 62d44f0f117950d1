"""The launcher runs in any image: Python 3.8 or later, and nothing but the standard library."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sagefit.paths import ROOT

from .conftest import LAUNCHER, OLDEST, PYTHON, Container, interpreters

MODULES = sorted(LAUNCHER.glob("*.py"))


@pytest.mark.parametrize("python", interpreters())
def test_needs_the_standard_library_only(python: str, tmp_path: Path) -> None:
    copy = tmp_path / "sagefit"
    shutil.copytree(LAUNCHER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [python, "-I", "-S", "-W", "error", str(copy), "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--entry-point" in done.stdout


@pytest.mark.parametrize("python", interpreters())
def test_runs_a_script(python: str, container: Container) -> None:
    outcome = container.run("print('here')\nraise MemoryError('full')", python=python)
    assert "here\n" in outcome.stdout
    assert outcome.failure == "sagefit: host_memory: train.py ended with exit code 1: MemoryError: full"
    assert "ResourceWarning" not in outcome.stderr


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_syntax_of_the_oldest_python(module: Path) -> None:
    tree = ast.parse(module.read_text(), feature_version=OLDEST)
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
    }
    assert imported <= sys.stdlib_module_names


def test_runs_as_a_module_of_the_package(container: Container) -> None:
    container.code("train.py", "print('as a module')")
    done = subprocess.run(
        [PYTHON, "-m", "sagefit.launcher", "--entry-point", "train.py"],
        env={**container.environment, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "as a module\n" in done.stdout

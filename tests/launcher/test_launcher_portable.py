"""The launcher runs in any image: Python 3.8 or later, and nothing but the standard library."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import ship_launcher

from sagefit.failures import diagnose
from sagefit.paths import ROOT

from .conftest import ARCHIVE, LAUNCHER, OLDEST, PYTHON, TRIAL, Container, Outcome, interpreters, ship, too_old

MODULES = sorted(LAUNCHER.glob("*.py"))


@pytest.mark.parametrize("python", interpreters())
def test_needs_the_standard_library_only(python: str, tmp_path: Path) -> None:
    ship(tmp_path)
    done = subprocess.run(
        [python, "-I", "-S", "-W", "error", str(tmp_path / ARCHIVE), "--help"],
        capture_output=True,
        text=True,
        check=False,
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


# Reads the launcher's first file as a Python would that is too old for the rest.
PRETENDED = "import runpy, sys; sys.version_info = (3, 7, 10, 'final', 0); runpy.run_path({!r}, run_name='__main__')"
REFUSAL = re.compile(
    r"sagefit: code: the launcher needs Python 3\.8 or newer, and python3 of this image is (2\.7|3\.[0-7])\.\d+: "
    r"choose an image with a newer one \(image in the job file\)"
)


def pretend(container: Container) -> Outcome:
    """What comes of it where the launcher's Python says that it is 3.7.10."""
    command = [PYTHON, "-c", PRETENDED.format(str(container.shipped / ARCHIVE))]
    return container.end(container.open(command, container.root))


def refused(done: Outcome) -> str:
    """The failure file of a Python that was told to be too old."""
    assert done.exit_code == 2, done.stderr
    assert done.failure
    assert REFUSAL.fullmatch(done.failure)
    assert done.stderr == done.failure + "\n"
    assert done.stdout == ""
    return done.failure


@pytest.mark.parametrize("python", too_old())
def test_a_python_that_is_too_old_says_so(python: str, container: Container) -> None:
    refused(container.run("print('never')", python=python))


def test_the_failure_reason_of_a_python_that_is_too_old_is_told_from_its_text(container: Container) -> None:
    container.code("train.py", "print('never')")
    told = refused(pretend(container))
    assert "is 3.7.10:" in told
    found = diagnose(failure_reason=f"AlgorithmError: {told}, exit code: 2")
    assert found.failure_class == "code"


def test_a_python_that_is_too_old_writes_through_no_link(container: Container, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    (container.root / "output").mkdir(exist_ok=True)
    (container.root / "output" / "failure").symlink_to(kept)
    refused(pretend(container))
    assert kept.read_text() == "as it was"


@pytest.mark.parametrize("python", too_old())
def test_a_trial_of_a_python_that_is_too_old_says_so_too(python: str, container: Container) -> None:
    container.config("hyperparameters", {"sagemaker_sagefit_arguments": json.dumps(["--entry-point", "train.py"])})
    refused(container.end(container.open([python, str(container.shipped / "sagefit_trial.py")], container.root)))


@pytest.mark.parametrize("first", [LAUNCHER / "__main__.py", TRIAL], ids=lambda path: path.stem)
def test_what_starts_the_launcher_is_written_for_any_python_from_2_7(first: Path) -> None:
    tree = ast.parse(first.read_text(encoding="ascii"))
    newer = (
        ast.JoinedStr,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.Nonlocal,
        ast.AsyncFunctionDef,
        ast.FunctionDef,
    )
    for node in ast.walk(tree):
        assert not isinstance(node, newer), ast.dump(node)
        assert not (isinstance(node, ast.Starred) and node not in _passed(tree)), ast.dump(node)
        assert not (isinstance(node, ast.Raise) and node.cause), ast.dump(node)
        assert not isinstance(node, ast.ImportFrom), ast.dump(node)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"importlib", "io", "json", "os", "sys", "types"}  # all of them in 2.7


def _passed(tree: ast.AST) -> list[ast.expr]:
    """What is passed last to a call, where 2.7 takes ``*words``."""
    return [node.args[-1] for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]


def test_what_jobs_ship_is_what_the_sources_are(tmp_path: Path) -> None:
    ship(tmp_path)
    assert (tmp_path / ARCHIVE).read_bytes() == ship_launcher.SHIPPED.read_bytes(), "make launcher writes it anew"


def test_runs_as_a_module_of_the_package(container: Container) -> None:
    container.code("train.py", "print('as a module')")
    done = subprocess.run(
        [PYTHON, "-m", "sagefit_launcher", "--entry-point", "train.py"],
        env={**container.environment, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "as a module\n" in done.stdout

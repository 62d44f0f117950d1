"""Sagefit without the extra `local`: all commands are there, and the embedded cloud says what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sagefit.errors import FAILED
from sagefit.paths import ROOT

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("moto", "flask", "flask_cors", "werkzeug", "sagefit_cloud")))
"""
"""Before a program: what the extra brings cannot be imported."""


def run(program: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "SAGEFIT_HOME": str(home / "sagefit"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_command_and_the_api_load_without_it(tmp_path: Path) -> None:
    program = """
import importlib, sagefit
from sagefit.cli import COMMANDS
for module in COMMANDS.values():
    importlib.import_module(module)
print(len([getattr(sagefit, name) for name in sagefit.__all__]), len(COMMANDS))
"""
    done = run(program, home=tmp_path)
    assert done.returncode == 0, done.stderr
    names, commands = map(int, done.stdout.split())
    assert names >= 15
    assert commands >= 20


def test_the_embedded_cloud_says_what_it_needs(tmp_path: Path) -> None:
    done = run("from sagefit.cli import main; main()", "cloud", "up", home=tmp_path)
    assert done.returncode == FAILED
    assert "needs packages that are not installed: sagefit_cloud, moto, flask_cors" in done.stderr
    assert "pip install 'sagefit[local]'" in done.stderr


def test_only_the_cloud_asks_for_the_extra() -> None:
    """What the base install brings is what Sagefit itself imports."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    base = project.partition("dependencies = [")[2].partition("]\n")[0]
    extra = project.partition("local = [")[2].partition("\n]")[0]
    assert "moto" not in base
    assert "flask-cors" not in base
    assert "moto[" in extra
    assert "flask-cors" in extra

"""What the pages show of the demo is what it does: its commands, the ledger that they print, and both by hand."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from checkout import copy_tree
from docs.pages import Block, blocks
from docs.shell import commands, make
from e2e.conftest import World
from sagefit.cloud import images
from sagefit.paths import ROOT
from sagefit.toolchain import terraform_binary

pytestmark = pytest.mark.xdist_group("e2e")

HERE = "tests/e2e/test_pages.py"


def shown(page: str, program: str) -> Block:
    """The block of a page that these tests run and that begins with a program."""
    found = [block for block in blocks(ROOT / page) if block.what == HERE]
    return next(block for block in found if next(commands(block.text)).program == program)


def in_bash(block: Block, folder: Path, environment: dict[str, str]) -> str:
    """Run a block as it is printed; its output."""
    done = subprocess.run(
        ["bash", "-euc", block.text], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def without_figures(text: str) -> str:
    """Times, sizes, prices and names of runs differ from run to run."""
    return re.sub(r"[ -]+", " ", re.sub(r"\d+(\.\d+)?", "0", text)).strip()


def test_the_demo_is_what_these_tests_run() -> None:
    assert [command.words[1:] for command in make(["demo"])] == [
        ["cloud", "up"],
        ["platform", "apply", "--yes"],
        ["run", "quickstart", "--yes"],
    ]


def test_the_ledger_of_the_demo(world: World) -> None:
    (command,) = commands(shown("README.md", "sagefit").text)
    assert command.words[1:] == ["--cloud", "local", "runs", "quickstart"]
    run = re.search(r"run (\S+) started", world.first_run.err)
    assert run
    out = world.sagefit("--cloud", "local", "runs", run[1]).out
    assert without_figures(out) == without_figures(command.output or "")


@pytest.mark.full(witness="tests/e2e/test_pages.py::test_the_quickstart_by_hand")
def test_a_job_without_python(world: World, tmp_path: Path) -> None:
    block = shown("docs/state.md", "terraform")
    copy_tree(tmp_path)
    variables = tmp_path / "jobs" / "quickstart.tfvars"
    text = variables.read_text(encoding="utf-8")
    variables.write_text(text.replace('"quickstart"', '"by-hand"', 1), encoding="utf-8")  # the world has that one
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TF_"))}
    environment |= world.sagefit.aws_environment()
    environment["PATH"] = f"{terraform_binary(world.sagefit.home).parent}:{environment['PATH']}"
    environment |= {"TF_INPUT": "0", "TF_CLI_ARGS_apply": "-auto-approve"}
    assert "Apply complete!" in in_bash(block, tmp_path, environment)
    machines = world.client("stepfunctions").list_state_machines()["stateMachines"]
    assert "sagefit-dev-by-hand" in [machine["name"] for machine in machines]
    (apply,) = [line for line in block.text.splitlines() if " apply " in line]
    destroy = Block(block.page, 0, 0, "shell", apply.replace(" apply ", " apply -destroy "))
    assert re.search(r"0 added, 0 changed, [1-9]\d* destroyed", in_bash(destroy, tmp_path, environment))


def test_the_quickstart_by_hand(tmp_path: Path) -> None:
    """With the environment of the embedded cloud's image as ``python``; ``pip`` looks whether it has the packages."""
    python = images.environment("sklearn") / "bin" / "python"
    (tmp_path / "bin").mkdir()
    has = "import sys, importlib.metadata as metadata; [metadata.version(name) for name in sys.argv[2:]]"
    for name, arguments in {"python": '"$@"', "pip": f'-c "{has}" "$@"'}.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{python}" {arguments}\n', encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    out = in_bash(shown("examples/quickstart/README.md", "pip"), ROOT, environment)
    accuracy = re.search(r"accuracy=([0-9.]+)", out)
    assert accuracy
    assert float(accuracy[1]) >= 0.95
    assert list((tmp_path / "sagefit-quickstart").rglob("model.joblib"))

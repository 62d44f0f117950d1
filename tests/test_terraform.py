"""The modules' own tests: every ``*.tftest.hcl`` file, with a mocked provider, in a copy of the checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from checkout import copy_tree
from sagefit.paths import ROOT, home
from sagefit.toolchain import terraform_binary, terraform_environment

FILES = sorted(path.relative_to(ROOT) for path in ROOT.glob("**/*.tftest.hcl") if ".terraform" not in path.parts)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    copy_tree(copy)
    return copy


def test_every_module_has_tests() -> None:
    tested = {file.parts[1] for file in FILES if file.parts[0] == "modules"}
    assert tested == {folder.name for folder in (ROOT / "modules").iterdir() if folder.is_dir()}


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=str)
def test_terraform(tree: Path, file: Path) -> None:
    root = tree / (Path(*file.parts[:2]) if file.parts[0] == "modules" else ".")
    folder = (tree / file).parent.relative_to(root)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "AWS_"))}
    environment |= terraform_environment(home()) | {"AWS_REGION": "us-east-1", "NO_COLOR": "1"}
    for arguments in (
        ["init", "-backend=false", f"-test-directory={folder}"],
        ["test", "-no-color", f"-test-directory={folder}", f"-filter={folder / file.name}"],
    ):
        done = subprocess.run(
            [terraform_binary(home()), f"-chdir={root}", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    passed = int(done.stdout.rsplit("Success! ", 1)[1].split()[0])
    assert passed > 0

"""What a change reaches is found and run, in small checkouts that really change, and in this one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from changed import changed_files, listed, steps, users
from sagefit.paths import ROOT

HERE = Path(__file__).parents[1]
FILES = {
    "python/sagefit/__init__.py": "",
    "python/sagefit/__main__.py": "from sagefit.cli import main\n",
    "python/sagefit/cli.py": "from sagefit.size import model\n",
    "python/sagefit/size/__init__.py": "",
    "python/sagefit/size/model.py": "from . import table\n",
    "python/sagefit/size/table.py": "",
    "python/sagefit/size/table.csv": "1\n",
    "python/sagefit/other.py": "import json\n",
    "modules/role/main.tf": "",
    "modules/job/main.tf": 'module "role" {\n  source = "../role"\n}\n',
    "tests/helper.py": "COMMAND = [None, '-m', 'sagefit', 'run']\n",
    "tests/conftest.py": 'pytest_plugins = ["levels", "changed"]\n',
    "tests/size/test_model.py": "from sagefit.size import model\n\ndef test_it():\n    pass\n",
    "tests/test_other.py": "from sagefit import other\n\ndef test_it():\n    pass\n",
    "tests/test_command.py": "import helper\n\ndef test_it():\n    pass\n",
    "tests/test_modules.py": (
        "import pathlib, pytest\n\nMODULES = pathlib.Path('modules')\n\n"
        "@pytest.mark.parametrize('module', ['modules/job', 'modules/role'])\ndef test_it(module):\n    pass\n"
    ),
    "tests/size/test_long.py": "import sagefit.size.model\n\ndef test_it():\n    pass\n",
    "docs/page.md": "",
    ".gitignore": "__pycache__/\n",
    "pytest.ini": "[pytest]\ntestpaths = tests\npythonpath = tests python\n",
}
MODEL, OTHER = "size/test_model.py::test_it", "test_other.py::test_it"
COMMAND, LONG = "test_command.py::test_it", "size/test_long.py::test_it"
JOB, ROLE = "test_modules.py::test_it[modules/job]", "test_modules.py::test_it[modules/role]"


@dataclass
class Checkout:
    """A checkout of its own."""

    path: Path

    def git(self, *arguments: str) -> None:
        """Run Git."""
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command = ["git", "-c", "core.hooksPath=/none", *arguments]
        subprocess.run(command, cwd=self.path, env=os.environ | who, check=True, capture_output=True)

    def pytest(self, *options: str, code: int = 0) -> str:
        """What a session says."""
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--changed", *options]
        environment = os.environ | {"PYTHONPATH": str(HERE)}
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def runs(self, *options: str) -> set[str]:
        """The tests that a session runs."""
        lines = (line for line in self.pytest(*options).splitlines() if "PASSED" in line)
        return {name for line in lines for name in re.findall(r"tests/(\S+::\S+)", line)}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made = Checkout(tmp_path)
    made.git("init", "-q", "-b", "main")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "all")
    return made


@pytest.mark.parametrize(
    ("changed", "reaches"),
    [
        ("python/sagefit/size/table.py", {MODEL, LONG, COMMAND}),
        ("python/sagefit/size/table.csv", {MODEL, LONG, COMMAND}),
        ("python/sagefit/__main__.py", {COMMAND}),
        ("python/sagefit/other.py", {OTHER}),
        ("python/sagefit/new.py", set()),
        ("modules/role/main.tf", {ROLE}),
        ("tests/helper.py", {COMMAND}),
        ("tests/conftest.py", {MODEL, LONG, COMMAND, OTHER, ROLE}),
        ("tests/levels.py", {MODEL, LONG, COMMAND, OTHER, ROLE}),
        ("tests/test_other.py", {OTHER}),
        ("docs/page.md", set()),
    ],
)
def test_a_change_reaches_what_uses_it(checkout: Checkout, changed: str, reaches: set[str]) -> None:
    (checkout.path / "tests/levels.py").touch()
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "-m", "levels")
    with (checkout.path / changed).open("a") as file:
        file.write("\n")
    found = steps(changed_files(checkout.path), users(checkout.path))
    tests = {name.partition("::")[0] for name in reaches}
    assert {name.removeprefix("tests/") for name in found if "/test_" in name} == tests


def test_cases_that_speak_of_the_change_come_first(checkout: Checkout) -> None:
    (checkout.path / "tests/durations.json").write_text(json.dumps({f"tests/{ROLE}": 40, f"tests/{JOB}": 30}))
    (checkout.path / "tests/levels.py").write_text((HERE / "levels.py").read_text())
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "-m", "durations")
    (checkout.path / "modules/role/main.tf").write_text("# new\n")
    assert checkout.runs() == {ROLE}


def test_what_is_committed_on_a_branch_or_removed_has_changed_too(checkout: Checkout) -> None:
    assert checkout.runs() == set()
    checkout.git("switch", "-q", "-c", "branch")
    (checkout.path / "python/sagefit/other.py").write_text("import os\n")
    checkout.git("commit", "-q", "-a", "-m", "other")
    (checkout.path / "python/sagefit/size/table.csv").unlink()
    assert checkout.runs() == {OTHER, MODEL, LONG, COMMAND}
    assert checkout.runs("--since", "HEAD", "-n", "2") == {MODEL, LONG, COMMAND}
    assert "--changed asks Git what has changed" in checkout.pytest("--since", "nowhere", code=4)


def test_what_has_no_time_is_named(checkout: Checkout) -> None:
    """Durations are those of this checkout's tests; the levels look for them beside themselves."""
    (checkout.path / "tests/durations.json").write_text(json.dumps({f"tests/{LONG}": 50, f"tests/{MODEL}": 40}))
    (checkout.path / "tests/levels.py").write_text((HERE / "levels.py").read_text())
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "-m", "durations")
    (checkout.path / "python/sagefit/size/table.py").write_text("\n")
    said = checkout.pytest()
    assert "changed: python/sagefit/size/table.py\n" in said
    assert "changed: 2 of the 3 tests that the change reaches\n" in said
    assert "left out, the nearest first: 1 of tests/size/test_long.py\n" in said


def test_in_this_checkout_every_source_reaches_a_test() -> None:
    """Who changes a file of the package or of a module gets an answer."""
    by = users(ROOT)
    rooms = ("python/sagefit/", "modules/", "policies/", "jobs/", "examples/", "docs/")
    sources = [name for name in listed(ROOT) if name.startswith(rooms)]
    assert len(sources) > 400
    reached = {name: steps([name], by) for name in sources}
    assert not [name for name in sources if not any(Path(file).name.startswith("test_") for file in reached[name])]

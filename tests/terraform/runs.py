"""The runs of ``*.tftest.hcl`` files, and what Terraform says of them.

``terraform test`` tells whether some rule of an object fired, not which. So a run that expects failures is run by
itself and without that line: it fails, and the diagnostics hold the message of every rule that fired. All other runs
of a file are run together, as they stand. The provider is mocked, and only asked for its schemas.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_environment
from terraform.rules import Rule

_NAME = re.compile(r'run "(\w+)" \{$', re.MULTILINE)
_MODULE = re.compile(r'^ *module \{\n *source *= *"([^"]*)"\n', re.MULTILINE)
_EXPECT = re.compile(r"^ *expect_failures *= *\[([^\]]*)\]\n", re.MULTILINE)
_OBJECT = re.compile(r"[\w.]+")
_SUFFIX = ".tftest.hcl"


@dataclass(frozen=True)
class Run:
    """One ``run`` block: its name, its text, the module it plans, and the objects whose rules it expects to fire."""

    name: str
    text: str
    source: str
    expects: frozenset[str]


@dataclass(frozen=True)
class TestFile:
    """A test file, by its path from the top of the checkout: what stands before its first run, and its runs."""

    __test__ = False

    path: Path
    head: str
    runs: tuple[Run, ...]

    @property
    def root(self) -> Path:
        """The directory that Terraform runs in, from the top of the checkout."""
        return Path(*self.path.parts[:2]) if self.path.parts[0] == "modules" else Path()

    @property
    def acceptances(self) -> list[Run]:
        """Runs that expect a plan."""
        return [run for run in self.runs if not run.expects]

    def refusals(self, subject: str) -> list[Run]:
        """Runs that expect a rule of this module to fire."""
        return [run for run in self.runs if run.expects and str(self.root / run.source) == subject]


def test_files(tree: Path) -> list[TestFile]:
    """Read all test files of a checkout. ``terraform fmt`` has formatted them: blocks start at the first column."""
    files = []
    for path in sorted([*tree.glob("modules/*/tests/*" + _SUFFIX), *tree.glob("tests/terraform/*" + _SUFFIX)]):
        head, *texts = re.split(r'^(?=run ")', path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        files.append(TestFile(path.relative_to(tree), head, tuple(map(_run, texts))))
    return files


test_files.__test__ = False  # type: ignore[attr-defined]


def _run(text: str) -> Run:
    """A run, by the few lines of it that say what it is: to parse the values of a thousand takes seconds."""
    name, source, expects = _NAME.match(text), _MODULE.search(text), _EXPECT.search(text)
    assert name, text
    expected = _OBJECT.findall(expects[1]) if expects else []
    return Run(name[1], text, source[1] if source else ".", frozenset(expected))


def refused_plans(tree: Path, file: TestFile) -> str:
    """Run the runs that expect a plan; return Terraform's words unless all of them pass."""
    with _folder(tree / file.root) as folder:
        (folder / file.path.name).write_text(file.head + "".join(run.text for run in file.acceptances))
        done = _test(folder, "-no-color")
    passed = f"Success! {len(file.acceptances)} passed, 0 failed."
    return "" if done.returncode == 0 and passed in done.stdout else done.stdout + done.stderr


def missed_rules(tree: Path, subject: str, rules: list[Rule], files: list[TestFile]) -> list[str]:
    """Run the runs that expect one of these rules of a module to fire; return what is wrong, a line each.

    Each must fire rules of the objects that it names and no others, and each rule must be fired alone by one.
    """
    problems, alone = wrong_refusals(tree, rules, _asked(subject, rules, files))
    return problems + [f"{subject}: no run fires only this rule: {rule}" for rule in rules if rule not in alone]


def wrong_first_refusals(tree: Path, subject: str, rules: list[Rule], files: list[TestFile]) -> list[str]:
    """The same of the first of these runs in each file, without asking whether each rule has one."""
    asked = _asked(subject, rules, files)
    return wrong_refusals(tree, rules, {file: runs[:1] for file, runs in asked.items()})[0]


def _asked(subject: str, rules: list[Rule], files: list[TestFile]) -> dict[TestFile, list[Run]]:
    owners = {rule.address for rule in rules}
    return {file: [run for run in file.refusals(subject) if run.expects & owners] for file in files}


def wrong_refusals(tree: Path, rules: list[Rule], asked: Mapping[TestFile, list[Run]]) -> tuple[list[str], set[Rule]]:
    """Run these runs; return what is wrong with what fires, and the rules that fire alone."""
    problems: list[str] = []
    alone: set[Rule] = set()
    for file, runs in asked.items():
        for run, errors in refusals(tree, file, runs):
            fired = {rule for rule in rules for error in errors if rule.says(error)}
            if not errors or not all(any(rule.says(error) for rule in fired) for error in errors):
                problems.append(f"{file.path}: {run.name}: ended with {errors or 'a plan'}, which no rule says")
            elif {rule.address for rule in fired} != run.expects:
                said = sorted(map(str, fired))
                problems.append(f"{file.path}: {run.name}: expects {sorted(run.expects)}, fired {said}")
            elif len(fired) == 1:
                alone |= fired
    return problems, alone


def refusals(tree: Path, file: TestFile, runs: list[Run]) -> list[tuple[Run, list[str]]]:
    """Run every run by itself, not expecting failures, and return the errors it ended with."""
    if not runs:
        return []
    for number in range(1001):  # what is too much to ship, and to keep
        (many := tree / "modules/training-job/tests/fixtures/many").mkdir(exist_ok=True)
        (many / f"{number}.py").touch()
    with _folder(tree / file.root) as folder:
        for run in runs:
            (folder / f"{run.name}{_SUFFIX}").write_text(file.head + _EXPECT.sub("", run.text))
        done = _test(folder, "-json")
    errors: dict[str, list[str]] = defaultdict(list)
    for event in map(json.loads, done.stdout.splitlines()):
        if event["type"] == "diagnostic" and event["diagnostic"]["severity"] == "error":
            # One without a file is none of a run: the tests could not start.
            errors[Path(event.get("@testfile", "")).name.removesuffix(_SUFFIX)].append(event["diagnostic"]["detail"])
    return [(run, errors[run.name] + errors[""]) for run in runs]


@contextmanager
def _folder(root: Path) -> Iterator[Path]:
    """A folder for rewritten tests. It lies below the root, because Terraform takes tests from nowhere else."""
    with tempfile.TemporaryDirectory(dir=root, prefix="rewritten-") as folder:
        yield Path(folder)


def _test(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder at the root around it, where the paths in them start."""
    where = f"-test-directory={folder.name}"
    _terraform(folder.parent, "init", "-backend=false", where)
    return _command(folder.parent, "test", where, *options)


def _terraform(root: Path, *arguments: str) -> None:
    done = _command(root, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def _command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "AWS_"))}
    environment |= terraform_environment(home()) | {"AWS_REGION": "us-east-1", "NO_COLOR": "1"}
    command = [str(terraform_binary(home())), f"-chdir={root}", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

"""The suites that may catch a mutation, cheapest first. Each returns what failed, in its own words, or nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mutations.catalogue import Mutation
from sagefit.paths import ROOT, home
from sagefit.toolchain import terraform_binary, terraform_environment
from terraform.rules import Rule, rules_of
from terraform.runs import Run, TestFile, missed_rules, refused_plans, test_files, wrong_refusals


@dataclass(frozen=True)
class Mutant:
    """A mutation in a copy of the checkout; ``owner`` is the object whose rule it changes, if it changes one."""

    mutation: Mutation
    tree: Path
    owner: str | None


Suite = Callable[[Mutant], str]

# Folders of tests/ that look at what the modules make.
PYTHON = ("plans", "policies", "proofs", "scenarios")


def validate(mutant: Mutant) -> str:
    """``terraform validate`` of the module."""
    for arguments in (["init", "-backend=false"], ["validate"]):
        done = subprocess.run(
            [terraform_binary(home()), f"-chdir={mutant.tree / mutant.mutation.module}", *arguments, "-no-color"],
            env=os.environ | terraform_environment(home()),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return done.stdout + done.stderr
    return ""


def owned_rules(mutant: Mutant) -> str:
    """The runs that expect a rule of the changed object to fire; nothing where the mutation changes no rule."""
    if mutant.owner is None:
        return ""
    known = [rule for rule in _known(mutant) if rule.address == mutant.owner]
    files = [replace(file, runs=tuple(_own_refusals(file, mutant))) for file in test_files(mutant.tree)]
    # As below: first the few runs that speak most of what is changed.
    few = {file: list(file.runs) for file in _telling(mutant.mutation.old, [file for file in files if file.runs], 3)}
    problems, _ = wrong_refusals(mutant.tree, known, few)
    return "\n".join(problems or missed_rules(mutant.tree, mutant.mutation.module, known, files))


def _known(mutant: Mutant) -> list[Rule]:
    return rules_of(ROOT / mutant.mutation.module)


def _own_refusals(file: TestFile, mutant: Mutant) -> list[Run]:
    return [run for run in file.refusals(mutant.mutation.module) if run.expects == {mutant.owner}]


def plans(mutant: Mutant) -> str:
    """The runs that expect a plan, of the module first and then of the roots that call it."""
    module = mutant.mutation.module
    caller = "job" if module in ("job", "modules/training-job") else "platform"
    files = [replace(file, runs=tuple(file.acceptances)) for file in test_files(mutant.tree) if file.acceptances]
    own = [file for file in files if file.root != Path() and str(file.root) == module]
    asked = own + [file for file in files if file.path.name == f"{caller}.tftest.hcl"]
    # First the few runs that speak most of what is changed: where they catch it, the others need not run.
    for file in [*_telling(mutant.mutation.old, asked, 2), *asked]:
        if refused := refused_plans(mutant.tree, file):
            return refused
    return ""


def _telling(old: str, files: list[TestFile], count: int) -> list[TestFile]:
    """Return the two best files with the runs left that share the rarest words with the old text."""
    texts = [run.text for file in files for run in file.runs]
    worth = {word: 1 / (1 + sum(word in text for text in texts)) for word in set(re.findall(r"\w{4,}", old))}

    def score(run: Run) -> float:
        return sum(value for word, value in worth.items() if word in run.text)

    few = [replace(file, runs=tuple(sorted(file.runs, key=score, reverse=True)[:count])) for file in files]
    return sorted(few, key=lambda file: -score(file.runs[0]))[:2]


def rules(mutant: Mutant) -> str:
    """All runs that expect a rule of the module to fire."""
    return "\n".join(missed_rules(mutant.tree, mutant.mutation.module, _known(mutant), test_files(mutant.tree)))


def python_tests(folder: str, tree: Path) -> str:
    """Run a folder of the Python tests up to the first that fails; return its words, or nothing."""
    # The copy's own package and state, not those of the checkout.
    environment = {k: v for k, v in os.environ.items() if k != "SAGEFIT_HOME"} | {
        "PYTHONPATH": str(tree / "python"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", f"tests/{folder}"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr)[-4000:] if done.returncode else ""


def _folder(folder: str, mutant: Mutant) -> str:
    return python_tests(folder, mutant.tree)


SUITES: dict[str, Suite] = {
    "validate": validate,
    "rule": owned_rules,
    "terraform": plans,
    "rules": rules,
    **{folder: partial(_folder, folder) for folder in PYTHON},
}

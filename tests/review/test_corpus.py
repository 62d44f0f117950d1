"""Plan pairs made by the real Terraform: every seeded danger is found, and hardly anything else."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from review.cases import FILES, Case, cases
from review.stack import Stack
from sagefit.paths import ROOT
from sagefit.reviewing import Document, Review, markdown, review

CASES = {name: cases(f"{name}.yaml") for name in FILES}
EACH = [pytest.param(name, marks=pytest.mark.xdist_group(f"review-{name}")) for name in FILES]
_LOUD = ("critical", "high", "medium")
KNOWN = {
    "new_bucket_unknown_policy": "a policy that is built from values that do not exist yet: nobody can review it",
    "new_role_unknown_policy": "the same",
    "vis-isolated-now": "a check of the module itself warns of a setting without effect",
}
"""Harmless changes that are called worse than low, and why that stays."""

# 80 seconds of Terraform for the largest: not again while nothing of this is changed.
pytestmark = pytest.mark.of_files(
    "modules/training-job", "python/sagefit/reviewing", "python/sagefit/iam", "python/sagefit/machine",
    "python/sagefit/planning", "python/sagefit/catalog", "python/sagefit/job/schedule_times.py", "tests/review/corpus",
    "tests/review/cases.py", "tests/review/stack.py", "tests/review/test_corpus.py",
)  # fmt: skip


@cache
def _reviewed(folder: Path, name: str) -> tuple[Review, str]:
    """The review of going from all cases before to all cases after, and Terraform's own line of counts."""
    of = CASES[name]
    for each in ("modules", "python"):  # where the modules of this repository are found, and they their files
        (folder / each).symlink_to(ROOT / each)
    stack = Stack(folder / "stack")
    stack.pretend_applied(stack.plan("\n".join(case.before for case in of)))
    leftover = stack.read_state()
    for block in leftover["resources"]:
        if block["name"] == "left_behind":  # what a replacement that failed half-way leaves
            block["instances"].append(block["instances"][0] | {"deposed": "0badcafe"})
    stack.write_state(leftover)
    found = review(Document("plan.json", stack.plan("\n".join(case.after for case in of))))
    line = re.search(r"^Plan: .*$", stack.terraform("show", "-no-color", "plan.tfplan").decode(), re.MULTILINE)
    assert line
    return found, line[0]


@pytest.fixture
def found(name: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Review, str]:
    folder = tmp_path_factory.getbasetemp() / f"review-{name}"
    folder.mkdir(exist_ok=True)
    return _reviewed(folder, name)


def _flagged(found: Review, of: list[Case]) -> dict[str, str]:
    """Harmless cases of which something is said, and what."""
    return {
        case.name: f"{finding.rule}: {finding.message.text(str)}"
        for case in of
        for finding in found.findings
        if not case.rule and case.owns(finding.address) and finding.severity in _LOUD
    }


@pytest.mark.parametrize("name", EACH)
def test_every_danger_is_found(name: str, found: tuple[Review, str]) -> None:
    missed = []
    for case in CASES[name]:
        there = [(f.rule, f.severity) for f in found[0].findings if case.owns(f.address)]
        if case.rule and not any(rule == case.rule and severity in _LOUD for rule, severity in there):
            missed.append(f"{case.name}: {case.rule} is not among {there}")
    assert missed == []


@pytest.mark.parametrize("name", EACH)
def test_nothing_is_found_that_is_of_no_case(name: str, found: tuple[Review, str]) -> None:
    strays = [f.address for f in found[0].findings if not any(case.owns(f.address) for case in CASES[name])]
    assert strays == []


@pytest.mark.parametrize("name", EACH)
def test_a_harmless_change_is_not_called_dangerous(name: str, found: tuple[Review, str]) -> None:
    flagged = _flagged(found[0], CASES[name])
    assert flagged.keys() == KNOWN.keys() & {case.name for case in CASES[name]}, flagged


def test_at_most_two_percent_of_harmless_changes_are_called_dangerous() -> None:
    harmless = [case.name for of in CASES.values() for case in of if not case.rule]
    assert KNOWN.keys() <= set(harmless)
    assert len(KNOWN) <= 0.02 * len(harmless)


@pytest.mark.parametrize("name", EACH)
def test_the_counts_are_those_of_terraform(name: str, found: tuple[Review, str]) -> None:  # noqa: ARG001
    counts = {what: int(n) for n, what in re.findall(r"(\d+) to (\w+)", found[1])}
    first = markdown(found[0]).split("**")[1]
    own_counts = {what: int(n) for n, what in re.findall(r"(\d+) (import|add|change|destroy)", first)}
    assert own_counts == counts


@pytest.mark.parametrize("name", [pytest.param("own", marks=pytest.mark.xdist_group("review-own"))])
def test_a_job_is_told_in_the_words_of_its_file(name: str, found: tuple[Review, str]) -> None:
    words = {job.name: {word.field: (word.before, word.after) for word in job.words} for job in found[0].jobs}
    assert name == "own"
    assert words["job-tuned"] == {
        "hyperparameters.epochs": ("3", "4"),
        "inputs.train.uri": ("s3://my-data/digits/", "s3://my-data/digits-2/"),
        "environment.MODE": ("quiet", "silent"),
    }
    assert "silent" not in markdown(found[0]), "values of environment variables are not for showing"
    assert words["job-dearer"] == {"attempts.more.instance_type": ("ml.g5.2xlarge", "ml.p4d.24xlarge")}
    dearer = next(job for job in found[0].jobs if job.name == "job-dearer")
    assert dearer.region == "us-east-1"
    assert dearer.cost_before
    assert dearer.cost
    assert (dearer.cost.worst or 0) > 5 * (dearer.cost_before.worst or 0) > 0


@pytest.mark.parametrize("name", [p for p in EACH if str(p.values[0]).startswith("own")])
def test_a_policy_that_follows_from_the_job_is_not_told_again(name: str, found: tuple[Review, str]) -> None:
    loud = {
        case.name: finding.rule
        for case in CASES[name]
        for finding in found[0].findings
        if case.owns(finding.address) and finding.severity in _LOUD and finding.rule.startswith("iam-")
    }
    assert loud.keys() <= {case.name for case in CASES[name] if case.rule.startswith("iam-")}, loud


def test_the_corpus_is_as_large_as_promised() -> None:
    every = [case for of in CASES.values() for case in of]
    assert len({case.kind for case in every if case.rule}) >= 12
    assert sum(bool(case.rule) for case in every) >= 280
    assert sum(not case.rule for case in every) >= 200
    names = [case.name for case in every]
    assert len(names) == len(set(names))

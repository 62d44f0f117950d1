"""Plan pairs made by the real Terraform: every seeded danger is found, and hardly anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from review.cases import Case, cases
from review.stack import Stack
from sagefit.paths import ROOT
from sagefit.reviewing import Document, Review, markdown, review

DANGERS, BENIGN, OWN = (cases(name) for name in ("dangers.yaml", "benign.yaml", "own.yaml"))
WITNESS = "tests/review/test_corpus.py::test_every_danger_is_found"
_LOUD = ("critical", "high", "medium")


def _reviewed(folder: Path, of: list[Case]) -> tuple[Review, str]:
    """The review of going from all cases before to all cases after, and Terraform's own line of counts."""
    for name in ("modules", "python"):  # where the modules of this repository are found, and they their files
        (folder / name).symlink_to(ROOT / name)
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


@pytest.fixture(scope="module")
def dangers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Review, str]:
    return _reviewed(tmp_path_factory.mktemp("dangers"), DANGERS)


@pytest.fixture(scope="module")
def benign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Review, str]:
    return _reviewed(tmp_path_factory.mktemp("benign"), BENIGN)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Review, str]:
    return _reviewed(tmp_path_factory.mktemp("own"), OWN)


def _missed(found: Review, of: list[Case]) -> list[str]:
    """Dangers without their finding, with what was found there instead."""
    missed = []
    for case in of:
        there = [(f.rule, f.severity) for f in found.findings if case.owns(f.address)]
        if case.rule and not any(rule == case.rule and severity in _LOUD for rule, severity in there):
            missed.append(f"{case.name}: {case.rule} is not among {there}")
    return missed


def _flagged(found: Review, of: list[Case]) -> list[str]:
    return [
        f"{case.name}: {finding.rule}: {finding.message.text(str)}"
        for case in of
        for finding in found.findings
        if not case.rule and case.owns(finding.address) and finding.severity in _LOUD
    ]


@pytest.mark.xdist_group("review-dangers")
def test_every_danger_is_found(dangers: tuple[Review, str]) -> None:
    assert _missed(dangers[0], DANGERS) == []


@pytest.mark.xdist_group("review-dangers")
def test_nothing_is_found_that_is_of_no_case(dangers: tuple[Review, str]) -> None:
    strays = [f.address for f in dangers[0].findings if not any(case.owns(f.address) for case in DANGERS)]
    assert strays == []


@pytest.mark.full(witness=WITNESS)
@pytest.mark.xdist_group("review-benign")
def test_at_most_two_percent_of_benign_changes_are_flagged(benign: tuple[Review, str]) -> None:
    flagged = _flagged(benign[0], BENIGN)
    assert len(flagged) <= 0.02 * len(BENIGN), flagged


@pytest.mark.full(witness=WITNESS)
@pytest.mark.xdist_group("review-own")
def test_dangers_of_our_own_modules_are_found_and_nothing_else(own: tuple[Review, str]) -> None:
    assert _missed(own[0], OWN) == []
    assert _flagged(own[0], OWN) == []


@pytest.mark.full(witness="tests/review/test_jobs.py")
@pytest.mark.xdist_group("review-own")
def test_a_job_is_told_in_the_words_of_its_file(own: tuple[Review, str]) -> None:
    words = {job.name: {word.field: (word.before, word.after) for word in job.words} for job in own[0].jobs}
    assert words["job-tuned"] == {
        "hyperparameters.epochs": ("3", "4"),
        "inputs.train.uri": ("s3://my-data/digits/", "s3://my-data/digits-2/"),
        "environment.MODE": ("quiet", "silent"),
    }
    assert "silent" not in markdown(own[0]), "values of environment variables are not for showing"
    assert words["job-dearer"] == {"attempts.more.instance_type": ("ml.g5.2xlarge", "ml.p4d.24xlarge")}
    dearer = next(job for job in own[0].jobs if job.name == "job-dearer")
    assert dearer.region == "us-east-1"
    assert dearer.cost_before
    assert dearer.cost
    assert (dearer.cost.worst or 0) > 5 * (dearer.cost_before.worst or 0) > 0


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("dangers", marks=pytest.mark.xdist_group("review-dangers")),
        *(
            pytest.param(name, marks=[pytest.mark.xdist_group(f"review-{name}"), pytest.mark.full(witness=WITNESS)])
            for name in ("benign", "own")
        ),
    ],
)
def test_the_counts_are_those_of_terraform(name: str, request: pytest.FixtureRequest) -> None:
    found, line = request.getfixturevalue(name)
    counts = {what: int(n) for n, what in re.findall(r"(\d+) to (\w+)", line)}
    first = markdown(found).split("**")[1]
    own_counts = {what: int(n) for n, what in re.findall(r"(\d+) (import|add|change|destroy)", first)}
    assert own_counts == counts


def test_the_corpus_is_as_large_as_promised() -> None:
    kinds = {case.kind for case in DANGERS + OWN if case.rule}
    assert sum(bool(case.rule) for case in DANGERS + OWN) >= 60
    assert len(kinds) >= 12, kinds
    assert sum(not case.rule for case in BENIGN + OWN) >= 60
    names = [case.name for case in DANGERS + BENIGN + OWN]
    assert len(names) == len(set(names))

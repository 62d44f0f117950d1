"""The modules' own tests: every ``*.tftest.hcl`` file, with a mocked provider, in a copy of the checkout.

Each rule of a module has a run that fires it and no other, so that a rule that is lost or loosened is missed.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from pathlib import Path

import hcl2
import pytest
from _pytest.mark import ParameterSet

from checkout import copy_tree
from sagefit.paths import ROOT
from terraform import decisive
from terraform.rules import Rule, rules_of
from terraform.runs import TestFile, missed_rules, refused_plans, test_files, wrong_first_refusals
from unchanged import digest

FILES = test_files(ROOT)
ACCEPTING = [file for file in FILES if file.acceptances]
# What the runs plan: all modules and both roots, by their paths from the top.
SUBJECTS = sorted([".", "job", *(str(folder.relative_to(ROOT)) for folder in (ROOT / "modules").iterdir())])
# A file that several modules have, so that each is whole when it is copied alone. The first of them has its runs.
SHARED = sorted(ROOT.glob("modules/*/context.tf"))


pytestmark = pytest.mark.xdist_group("terraform")


@cache
def rules(subject: str) -> list[Rule]:
    """The rules of a module."""
    return rules_of(ROOT / subject)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout."""
    copy = tmp_path_factory.mktemp("tree")
    copy_tree(copy)
    return copy


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_module_is_planned(subject: str) -> None:
    assert any(str(file.root / run.source) == subject for file in FILES for run in file.acceptances)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_messages_tell_rules_apart(subject: str) -> None:
    assert len(set(rules(subject))) == len(rules(subject))


@pytest.mark.parametrize("subject", SUBJECTS)
def test_messages_name_the_knob(subject: str) -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in (ROOT / subject).glob("*.tf"))
    knobs = "|".join(re.findall(r'^variable "(\w+)"', text, re.MULTILINE))
    for rule in rules(subject):
        assert re.search(rf"\b({knobs})\b", rule.message), rule


def _accepting(file: TestFile) -> ParameterSet:
    """What a file's runs plan decides what they show, and their file does."""
    subjects = {os.path.normpath(file.root / run.source) for run in file.acceptances}
    marks = pytest.mark.of_files(*decisive.of_a_plan(*subjects), str(file.path))
    return pytest.param(file, marks=marks, id=str(file.path))


@pytest.mark.parametrize("file", [_accepting(file) for file in ACCEPTING])
def test_runs_that_expect_a_plan(tree: Path, file: TestFile) -> None:
    assert (refused := refused_plans(tree, file)) == "", refused


def _rules_of(subject: str) -> ParameterSet:
    return pytest.param(subject, marks=pytest.mark.of_files(*decisive.of_its_rules(subject)))


@pytest.mark.parametrize("subject", [_rules_of(subject) for subject in SUBJECTS])
def test_every_rule_has_a_run_that_fires_it_alone(tree: Path, subject: str) -> None:
    elsewhere = {file.name for file in SHARED[1:] if file.parent == ROOT / subject}
    problems = missed_rules(tree, subject, rules_of(ROOT / subject, without=elsewhere), FILES)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_first_run_of_each_file_still_fires_its_rule(tree: Path, subject: str) -> None:
    problems = wrong_first_refusals(tree, subject, rules(subject), FILES)
    assert not problems, "\n".join(problems)


def test_a_file_that_several_modules_have_is_the_same_in_all() -> None:
    assert len(SHARED) == 6
    for file in SHARED[1:]:
        assert file.read_bytes() == SHARED[0].read_bytes(), f"cp {SHARED[0]} {file}"


@pytest.mark.parametrize("subject", [subject for subject in SUBJECTS if subject.startswith("modules/")])
def test_a_module_reads_nothing_outside_of_itself(subject: str) -> None:
    for file in (ROOT / subject).glob("*.tf"):
        assert not re.search(r"\.\./", file.read_text(encoding="utf-8")), file


def test_a_job_s_module_is_whole_where_it_is_copied_alone(tmp_path: Path) -> None:
    (file,) = (file for file in FILES if str(file.path) == "modules/training-job/tests/groups.tftest.hcl")
    shutil.copytree(ROOT / "modules" / "training-job", tmp_path / "modules" / "training-job")
    assert (refused := refused_plans(tmp_path, file)) == "", refused


def test_a_state_that_two_parts_write_is_refused(tmp_path: Path) -> None:
    (file,) = (file for file in FILES if str(file.path) == "modules/training-job/tests/groups.tftest.hcl")
    shutil.copytree(ROOT / "modules" / "training-job", copy := tmp_path / "modules" / "training-job")
    graph = (copy / "definition.tf").read_text(encoding="utf-8")
    (copy / "definition.tf").write_text(graph.replace('"no reason" = {', "completed = {"), encoding="utf-8")
    refused = " ".join(refused_plans(tmp_path, file).split())
    assert "Duplicate object key" in refused
    assert '"completed"' in refused


@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_key_of_an_object_is_written_twice(subject: str) -> None:
    """Terraform takes the last of them and says nothing."""
    for file in (ROOT / subject).glob("*.tf"):
        for written in hcl2.parses_to_tree(file.read_text(encoding="utf-8")).find_data("object"):
            elements = [child for child in written.children if getattr(child, "data", "") == "object_elem"]
            keys = ["".join(map(str, element.children[0].scan_values(lambda _: True))) for element in elements]
            assert len({key.strip('"') for key in keys}) == len(keys), (file, keys)


def test_what_decides_its_rules_fires_those_of_a_module_again(tmp_path: Path) -> None:
    copy_tree(tree := tmp_path / "tree")

    def digests(root: Path) -> dict[str, str]:
        return {subject: digest(decisive.of_its_rules(subject), root) for subject in SUBJECTS}

    assert (before := digests(tree)) == digests(ROOT)
    changed = {
        "modules/iam-role/tests/iam_role.tftest.hcl": {".", "modules/iam-role"},
        "modules/training-job/instances.csv": {"job", "modules/training-job"},
        "modules/training-job/launcher/launcher.pyz": set(),
        "tests/terraform/job.tftest.hcl": set(SUBJECTS),
        "main.tf": {"."},
    }
    for name, subjects in changed.items():
        was = (tree / name).read_bytes()
        (tree / name).write_bytes(was + b"\n")
        after = digests(tree)
        assert {subject for subject in SUBJECTS if after[subject] != before[subject]} == subjects, name
        (tree / name).write_bytes(was)


def test_a_plan_reads_nothing_of_what_does_not_count(tree: Path) -> None:
    """With nothing in these files, the job is planned as before."""
    (file,) = (file for file in FILES if str(file.path) == "modules/training-job/tests/request.tftest.hcl")
    for path in decisive.NEVER_READ:
        was = (tree / path).read_bytes()
        (tree / path).write_bytes(b"")
        try:
            assert (refused := refused_plans(tree, file)) == "", refused
        finally:
            (tree / path).write_bytes(was)

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
from terraform import proven
from terraform.rules import Rule, rules_of
from terraform.runs import TestFile, missed_rules, refused_plans, test_files, wrong_first_refusals

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
    marks = pytest.mark.of_files(*proven.decided_by(*subjects), str(file.path))
    return pytest.param(file, marks=marks, id=str(file.path))


@pytest.mark.parametrize("file", [_accepting(file) for file in ACCEPTING])
def test_runs_that_expect_a_plan(tree: Path, file: TestFile) -> None:
    assert (refused := refused_plans(tree, file)) == "", refused


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_rule_has_a_run_that_fires_it_alone(tree: Path, subject: str, request: pytest.FixtureRequest) -> None:
    """Of a module that has not changed since, one run of each file shows that they still fire."""
    elsewhere = {file.name for file in SHARED[1:] if file.parent == ROOT / subject}
    if request.config.option.level == "full" or not proven.is_proven(subject):
        problems = missed_rules(tree, subject, rules_of(ROOT / subject, without=elsewhere), FILES)
    else:
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


def test_what_changes_is_not_proven_any_more(tmp_path: Path) -> None:
    copy_tree(tree := tmp_path / "tree")
    before = {subject: proven.digest(subject, tree) for subject in SUBJECTS}
    assert before == {subject: proven.digest(subject) for subject in SUBJECTS}
    changed = {
        "modules/iam-role/tests/iam_role.tftest.hcl": {".", "modules/iam-role"},
        "modules/training-job/instances.csv": {"job", "modules/training-job"},
        "main.tf": {"."},
    }
    for name, subjects in changed.items():
        text = (tree / name).read_text(encoding="utf-8")
        (tree / name).write_text(f"{text}\n", encoding="utf-8")
        assert {subject for subject in SUBJECTS if proven.digest(subject, tree) != before[subject]} == subjects
        (tree / name).write_text(text, encoding="utf-8")

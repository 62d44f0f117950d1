"""``sagefit examples``: what it finds, runs, prints and keeps, in a checkout with examples of this test's own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from checkout import copy_tree
from cli_runner import Sagefit
from sagefit.errors import FAILED, INVALID
from sagefit.examples import all_examples, chosen, faults_files
from sagefit.examples.find import Example

PLATFORM_AND_IMAGE = 'platform: dev\nimage: { framework: sklearn, version: "1.2-1" }\n'
CODE = "code: { source_dir: ../minimal/code, entry_point: train.py }\nresources: { instance_type: ml.m5.large }\n"


def example(folder: Path, name: str, text: str) -> Example:
    path = folder / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Example(path)


@pytest.mark.full(witness="tests/examples/test_runs.py::test_the_example_keeps_its_promises[disk]")
def test_examples_are_run_and_kept(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    copy_tree(tree)
    for folder in (tree / "examples").iterdir():
        if folder.is_dir() and folder.name != "minimal":
            shutil.rmtree(folder)
    (tree / "examples" / "results.json").unlink(missing_ok=True)
    broken = example(tree / "examples" / "broken", "broken", f"# Breaks.\n{PLATFORM_AND_IMAGE}{CODE}")
    example(tree / "examples" / "far", "far", f"# Far.\n# Planned only: it is far away.\n{PLATFORM_AND_IMAGE}{CODE}")
    there = Sagefit(tmp_path / "home", PYTHONPATH=str(tree / "python"))
    there("render", broken.path, cwd=tree)
    text = broken.path.read_text(encoding="utf-8")
    broken.path.write_text(text + "hyperparameters: { epochs: 3 }\n", encoding="utf-8")  # and not rendered again

    done = there("examples", "--json", "--write", cwd=tree, check=FAILED)
    rows = {row["job"]: row for row in map(json.loads, done.out.splitlines())}
    assert {name: row["status"] for name, row in rows.items()} == {
        "broken": "failed",
        "far": "planned",
        "minimal": "completed",
    }
    assert "broken.tfvars is out of date" in rows["broken"]["reason"]
    assert rows["far"]["reason"] == "it is far away."
    assert [step["outcome"] for step in rows["minimal"]["steps"]] == ["completed"]
    assert re.search(r"^minimal: attempt 0 main on ml\.m5\.large: completed$", done.err, re.MULTILINE)

    kept = json.loads((tree / "examples" / "results.json").read_text(encoding="utf-8"))
    assert [row["job"] for row in kept["jobs"]] == ["far", "minimal"]
    page = (tree / "examples" / "minimal" / "README.md").read_text(encoding="utf-8")
    assert f"loss={rows['minimal']['metrics']['loss']:.5g} |" in page
    overview = (tree / "examples" / "README.md").read_text(encoding="utf-8")
    assert "| [far](far/README.md) | Far. | AWS |" in overview
    assert "far is planned only: it is far away." in overview
    assert not list(tmp_path.rglob("cloud.json")), "its cloud is taken down"


def test_a_comment_says_what_an_example_shows_and_why_it_is_only_planned(tmp_path: Path) -> None:
    text = (
        "# Two hosts of ml.m5.large, each\n# with its own. More words.\n# Planned only: nobody\n# has it. Yet.\na: 1\n"
    )
    found = example(tmp_path / "two", "two", text)
    assert found.shows == "Two hosts of ml.m5.large, each with its own."
    assert found.planned_only == "nobody has it."
    assert example(tmp_path / "two", "one", "a: 1 # Planned only: no\n").planned_only == ""


def test_examples_are_job_files_with_the_main_one_first(tmp_path: Path) -> None:
    for name in ("b/a", "b/b", "b/faults", "a/a", "a/deeper/c"):
        example(tmp_path / name.rpartition("/")[0], name.rpartition("/")[2], "[]\n")
    found = all_examples(tmp_path)
    assert [one.name for one in found] == ["a", "b", "b/a"]
    assert faults_files(found) == [tmp_path / "b" / "faults.yaml"]
    assert [one.name for one in chosen(["b"], found)] == ["b", "b/a"]
    assert [one.name for one in chosen(["b/a"], found)] == ["b/a"]


def test_an_unknown_example_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    done = Sagefit(tmp_path)("examples", "minimel", check=INVALID)
    assert done.err == "error: no example 'minimel'\nhint: did you mean minimal?\n"

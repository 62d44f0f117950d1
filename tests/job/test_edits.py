"""Edits of a job file's text: the field is changed, and nothing else."""

from __future__ import annotations

import copy
import difflib
from pathlib import Path
from typing import Any

import pytest
import yaml

from sagefit.errors import SagefitError
from sagefit.job.edits import Edit, edited
from sagefit.paths import ROOT

TEXT = """\
# what it is for
name: digits   # short
resources:
  # enough for the sample
  max_runtime: 1h  # or two
  instance_type: [ml.m5.large, ml.m5.xlarge]

hyperparameters: {}
memory:
environment:
  NOTE: |
    two
    lines

attempts:
  - name: first
    next: { disk: second }

  - { name: second, next: {} }
# the end
"""


@pytest.mark.parametrize(
    ("field", "value", "lines"),
    [
        (("resources", "max_runtime"), "2h", ["-  max_runtime: 1h  # or two", "+  max_runtime: 2h  # or two"]),
        (
            ("resources", "instance_type"),
            "ml.c5.large",
            ["-  instance_type: [ml.m5.large, ml.m5.xlarge]", "+  instance_type: ml.c5.large"],
        ),
        (("resources", "volume_size_gb"), 60, ["+  volume_size_gb: 60"]),
        (("hyperparameters", "batch"), 4, ["-hyperparameters: {}", "+hyperparameters: { batch: 4 }"]),
        (("memory", "model"), "gpt2", ["-memory:", "+memory: {model: gpt2}"]),
        (("environment", "MORE"), "1", ["+  MORE: '1'"]),
        (("attempts", 0, "hyperparameters", "batch"), 4, ["+    hyperparameters:", "+      batch: 4"]),
        (("attempts", 0, "spot"), False, ["+    spot: false"]),
        (
            ("attempts", 0, "next", "time"),
            "second",
            ["-    next: { disk: second }", "+    next: { disk: second, time: second }"],
        ),
        (
            ("attempts", 1, "spot"),
            False,
            ["-  - { name: second, next: {} }", "+  - { name: second, next: {}, spot: false }"],
        ),
        (("max_price",), 3, ["+max_price: 3"]),
        (("name",), "a: #", ["-name: digits   # short", "+name: 'a: #'   # short"]),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_only_the_field_changes(field: tuple[str | int, ...], value: Any, lines: list[str], ends: str) -> None:
    before = TEXT.replace("\n", ends)
    after = edited(before, [Edit(field, value)])
    diff = difflib.unified_diff(before.split(ends), after.split(ends), n=0, lineterm="")
    assert [line for line in diff if line[:2] not in ("--", "++", "@@")] == lines
    assert after.count("\n") == after.count(ends)


@pytest.mark.parametrize("text", ["name: a", "{ name: a }", "name: a # b", "---\nname: a\n...\n"])
def test_however_the_file_ends(text: str) -> None:
    assert yaml.safe_load(edited(text, [Edit(("resources", "max_runtime"), "2h")])) == {
        "name": "a",
        "resources": {"max_runtime": "2h"},
    }


@pytest.mark.parametrize("before", ["a:\n  - 1\n  - 2\nb: 3\n", "a:\n- 1\n- 2\n\nb: 3\n", "b: 3\na:\n- 1\n"])
def test_a_list_of_several_lines_becomes_one_line(before: str) -> None:
    after = edited(before, [Edit(("a",), [1, 4])])
    assert yaml.safe_load(after) == {"a": [1, 4], "b": 3}
    assert "[1, 4]\n" in after


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("a: &x { b: 1 }\nc: *x\n", ("c", "b")),
        ("a:\n  - b # why\n", ("a",)),
        ("a: |\n  long\n", ("a",)),
        ("a: [1]\n", ("a", "b")),
        ("a: 1\n", ("a", "b")),
    ],
    ids=["alias", "block", "text", "list", "scalar"],
)
def test_what_cannot_be_changed_is_refused_with_the_line_to_write(text: str, field: tuple[str, ...]) -> None:
    with pytest.raises(SagefitError) as refused:
        edited(text, [Edit(field, 2)])
    assert refused.value.hint == f"write {'.'.join(field)}: 2 yourself"


FILES = sorted([*ROOT.glob("jobs/*.yaml"), *ROOT.glob("examples/*/*.yaml"), *ROOT.glob("examples/*/jobs/*.yaml")])
FIELDS: list[tuple[tuple[str, str], Any]] = [
    (("resources", "max_runtime"), "2h"),
    (("resources", "instance_type"), "ml.m5.large"),
    (("hyperparameters", "batch_of_a_test"), 3),
    (("memory", "precision"), "bf16"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_job_file_of_the_project_can_be_edited(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    if not isinstance(data, dict) or "platform" not in data:
        return
    for (above, name), value in FIELDS:
        wanted = copy.deepcopy(data)
        wanted.setdefault(above, {})[name] = value
        after = edited(text, [Edit((above, name), value)])
        assert yaml.safe_load(after) == wanted
        assert abs(len(after.splitlines()) - len(text.splitlines())) <= 2
        removed = [line for line in difflib.ndiff(text.splitlines(), after.splitlines()) if line.startswith("- ")]
        assert len(removed) <= 1

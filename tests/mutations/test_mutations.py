"""The list of mutations keeps up with the modules, and a mutation is caught for the right reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from mutations.catalogue import Mutation, load
from mutations.run import main
from mutations.suites import SUITES
from sagefit.paths import ROOT
from terraform.rules import rules_of

MUTATIONS = load()


@cache
def _owners(module: str) -> set[str]:
    return {rule.address for rule in rules_of(ROOT / module)}


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(MUTATIONS) >= 60
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    assert {mutation.module for mutation in MUTATIONS} == {
        ".",
        "job",
        *(str(folder.relative_to(ROOT)) for folder in (ROOT / "modules").iterdir()),
    }


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_old_text_stands_once(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.apply(text) != text
    if owner := mutation.rule_owner(text):
        assert owner in _owners(mutation.module)


def test_a_text_that_moved_is_told() -> None:
    with pytest.raises(ValueError, match=r"x: main\.tf holds the old text 2 times instead of once: 'a'"):
        Mutation("x", "main.tf", "a", "b", "").apply("a a")


def test_the_rule_that_is_changed_is_found() -> None:
    text = (ROOT / "modules/training-job/state-machine.tf").read_text(encoding="utf-8")
    named = {mutation.name: mutation for mutation in MUTATIONS}
    assert named["rule-keep-alive"].rule_owner(text) == "aws_sfn_state_machine.this"
    assert named["log-off"].rule_owner(text) is None


def test_results_are_kept_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []
    monkeypatch.setitem(SUITES, "validate", lambda mutant: asked.append(mutant) or "")  # type: ignore[func-returns-value]
    options = ["--only", "job-schema", "--results", str(tmp_path), "--suites"]
    assert main([*options, "validate"]) == 1
    assert "survives validate: job-schema (job/main.tf)" in capsys.readouterr().out
    monkeypatch.setitem(SUITES, "rule", lambda mutant: (mutant.tree / mutant.mutation.file).read_text())
    assert main([*options, "validate,rule"]) == 0
    assert len(asked) == 1
    assert "schema >= 1" in "".join(path.read_text() for path in tmp_path.glob("job-schema-*.json"))
    assert main([*options, "validate", "--report"]) == 0


def test_a_suite_that_always_fails_catches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutations.run.python_tests", lambda folder, tree: f"{folder} {tree.name}")
    with pytest.raises(SystemExit, match=r"tests/plans fails without any mutation; mend it first:\nplans tree"):
        main(["--only", "job-schema", "--results", str(tmp_path), "--suites", "plans"])
    assert not list(tmp_path.glob("job-schema-*.json"))

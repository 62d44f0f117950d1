"""What the pages of a branch print: for people, for Markdown and for programs, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from review.plans import change, reviewed
from sagefit.cli import branch
from sagefit.errors import DONE, INVALID, REFUSED, SagefitError
from sagefit.gitops.changed import Report
from sagefit.gitops.guards import Guarded
from sagefit.gitops.looking import Look, Seen
from sagefit.gitops.whole import Whole
from sagefit.reviewing import Review, Tuning

HEAD, HERE = "a" * 40, "b" * 40
CALM = reviewed()
ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
DANGER = change("aws_iam_role_policy.this", None, {"policy": json.dumps(ALL)})
GUARD = Guarded(Path(".sagefit-review.yaml"), "the settings of reviews", "they say what blocks")


def stack(found: Review | SagefitError, *left_out: str) -> Seen:
    return Seen("dev/jobs/digits", found, left_out)


def show(
    monkeypatch: pytest.MonkeyPatch, shape: str, *stacks: Seen, guards: tuple[Guarded, ...] = (), blocked: bool = False
) -> int:
    whole = Whole(HEAD, "high", guards, (), blocked) if guards else None
    seen = Look(Report("main", HEAD, (), (), guards), whole, HERE, stacks)
    monkeypatch.setattr(branch, "look", lambda *_: seen)

    def page(found: Review, _shape: str) -> None:
        print(f"page of {len(found.findings)} findings")

    return branch.show("HEAD", "main", shape, None, None, page)


def test_people_read_which_code_looked_and_what_it_did_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"training/part_{number}.py" for number in range(7)]
    for shape in ("terminal", "markdown"):
        assert show(monkeypatch, shape, stack(CALM, *files)) == DONE
        out = capsys.readouterr().out
        assert "touches 1 stacks" in out
        assert "made by the code of bbbbbbbbbbbb, and nothing of the branch was run" in " ".join(out.split())
        assert "training/part_4.py and 2 more" in " ".join(out.replace("`", "").split())
        assert "page of 0 findings" in out
    assert show(monkeypatch, "markdown") == DONE
    assert "touches no job and no platform" in capsys.readouterr().out


def test_programs_read_a_line_for_the_branch_and_one_for_each_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = SagefitError("jobs/digits.yaml:3: no such field", exit_code=INVALID)
    assert show(monkeypatch, "json", stack(CALM, "a.py"), stack(broken), guards=(GUARD,), blocked=True) == REFUSED
    told = capsys.readouterr()
    head, good, bad = (json.loads(line) for line in told.out.splitlines())
    assert (head["commit"], head["made_by"], head["blocked"]) == (HEAD, HERE, True)
    assert head["reviewer"][0]["file"] == ".sagefit-review.yaml"
    assert good["left_out"] == ["a.py"]
    assert bad["error"] == broken.message
    assert broken.message in told.err


def test_what_alters_the_review_stands_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(monkeypatch, "markdown", stack(CALM), guards=(GUARD,)) == DONE
    out = capsys.readouterr().out
    assert out.startswith("## This change alters what reviews it: review needed")
    assert "`.sagefit-review.yaml`" in out


@pytest.mark.parametrize("shape", ["terminal", "markdown"])
def test_a_stack_that_cannot_be_planned_keeps_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shape: str
) -> None:
    broken = SagefitError("jobs/digits.yaml:3: no such field", hint="remove it", exit_code=INVALID)
    assert show(monkeypatch, shape, stack(broken), stack(CALM)) == INVALID
    told = capsys.readouterr()
    assert "dev/jobs/digits: not planned" in told.out.replace("`", "")
    assert (broken.message in told.out) == (shape == "markdown")
    assert "hint: remove it" in told.err
    assert "page of 0 findings" in told.out, "the other one is shown all the same"


@pytest.mark.parametrize(("gate", "code"), [(None, DONE), ("critical", REFUSED), ("low", REFUSED)])
def test_a_gate_shuts_for_one_bad_stack(monkeypatch: pytest.MonkeyPatch, gate: Any, code: int) -> None:
    dangerous = reviewed(DANGER, tuning=Tuning(fail_on=gate))
    assert show(monkeypatch, "markdown", stack(CALM), stack(dangerous)) == code

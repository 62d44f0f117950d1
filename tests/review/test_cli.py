"""The command: what it prints where, and with which exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from review.plans import change, plan
from review.stack import Stack
from sagefit.cli.review import app
from sagefit.errors import SagefitError
from sagefit.paths import ROOT
from sagefit.reviewing import Tuning, load_tuning
from sagefit.reviewing.rules import rules

DANGER = plan([change("aws_s3_bucket.b", {"bucket": "b"}, None)])
CALM = plan([change("aws_sns_topic.t", None, {"name": "t"})])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    made = {"danger": DANGER, "calm": CALM, "broken": DANGER[:100]}
    for name, data in made.items():
        (tmp_path / f"{name}.json").write_bytes(data)
    return {name: str(tmp_path / f"{name}.json") for name in made}


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def _error(result: Result) -> SagefitError:
    assert isinstance(result.exception, SagefitError), result.exception
    return result.exception


def test_a_page_is_made_whatever_is_in_it(files: dict[str, str]) -> None:
    done = _run(files["danger"])
    assert done.exit_code == 0
    assert done.stdout.startswith("<!-- sagefit:plan stack=danger.json")


@pytest.mark.parametrize(("severity", "code"), [("critical", 4), ("high", 4), ("low", 4)])
def test_the_gate_shuts(files: dict[str, str], severity: str, code: int) -> None:
    assert _run(files["danger"], "--fail-on", severity).exit_code == code
    assert _run(files["calm"], "--fail-on", severity).exit_code == 0


def test_a_gate_does_not_open_for_what_could_not_be_judged(tmp_path: Path) -> None:
    path = tmp_path / "failed.json"
    path.write_bytes(plan(errored=True, complete=False))
    assert _run(str(path)).exit_code == 0
    assert _run(str(path), "--fail-on", "critical").exit_code == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["broken"], "broken JSON"),
        (["/no/such/plan.json"], "cannot be read"),
        (["calm", "--format", "pdf"], "--format pdf"),
        (["calm", "--fail-on", "terrible"], "--fail-on terrible"),
        (["calm", "--tuning", "/no/such.yaml"], "cannot be read"),
        (["calm", "calm", "--plan-file", "x"], "--plan-file"),
        (["calm", "--plan-file", "calm"], "no saved plan"),
    ],
    ids=range(7),
)
def test_bad_input_is_named(files: dict[str, str], arguments: list[str], words: str) -> None:
    error = _error(_run(*(files.get(argument, argument) for argument in arguments)))
    assert words in error.message
    assert error.hint
    assert error.exit_code == 2


def test_several_plans_are_one_object_a_line_and_one_broken_does_not_hide_the_rest(files: dict[str, str]) -> None:
    done = _run(files["calm"], files["danger"], "--format", "json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["plan"] for line in lines] == ["calm.json", "danger.json"]
    assert [len(line["findings"]) for line in lines] == [0, 1]
    mixed = _run(files["broken"], files["danger"], "--format", "json")
    assert mixed.exit_code == 2
    assert [json.loads(line)["plan"] for line in mixed.stdout.splitlines() if line.startswith("{")] == ["danger.json"]
    assert _run(files["broken"], files["danger"], "--fail-on", "high").exit_code == 4


def test_the_terminal_page_says_the_same(files: dict[str, str]) -> None:
    done = _run(files["danger"], "--format", "terminal")
    assert "0 add, 0 change, 1 destroy" in done.stdout
    assert "aws_s3_bucket.b" in done.stdout
    assert "stateful-destroy" in done.stdout


def _tuned(folder: Path, text: str) -> str:
    (folder / "tuning.yaml").write_text(text, encoding="utf-8")
    return str(folder / "tuning.yaml")


def test_the_verdict_says_whether_the_gate_is_shut(files: dict[str, str]) -> None:
    verdicts = {
        (name, gate): json.loads(_run(files[name], "--format", "json", *gate).stdout)["verdict"]
        for name in ("danger", "calm")
        for gate in ((), ("--fail-on", "high"))
    }
    assert verdicts == {
        ("danger", ()): "review needed",
        ("danger", ("--fail-on", "high")): "blocked",
        ("calm", ()): "nothing dangerous found",
        ("calm", ("--fail-on", "high")): "nothing dangerous found",
    }


def test_a_repository_tunes_it(files: dict[str, str], tmp_path: Path) -> None:
    gate = _tuned(tmp_path, "fail_on: high\n")
    assert _run(files["danger"], "--tuning", gate).exit_code == 4
    softer = _tuned(tmp_path, "fail_on: high\nseverities: { stateful-destroy: medium }\n")
    assert _run(files["danger"], "--tuning", softer).exit_code == 0
    one = "rule: stateful-destroy, address: aws_s3_bucket.b, reason: emptied before, expires: 2026-12-31"
    accepted = f"fail_on: low\nsuppress:\n- {{ {one} }}\n"
    assert _run(files["danger"], "--tuning", _tuned(tmp_path, accepted)).exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("severities: { stateful-destroi: low }", "no rule 'stateful-destroi'"),
        ("severities: { stateful-destroy: mild }", "severities.stateful-destroy"),
        ("colour: red", "colour"),
        ("suppress: [{ rule: stateful-destroy, address: x, reason: because }]", "suppress.0"),
        ("suppress: [{ rule: stateful-destroy, address: x, reason: a good reason }]", "suppress.0.expires"),
        ("suppress: [{ rule: nothing, address: x, reason: a good reason, expires: 2026-01-01 }]", "no rule 'nothing'"),
        ("price_factor: 0.5", "price_factor"),
        ("- a", "the file"),
        ("a: [", "no YAML"),
    ],
    ids=range(9),
)
def test_a_tuning_file_with_a_mistake_is_refused(files: dict[str, str], tmp_path: Path, text: str, words: str) -> None:
    error = _error(_run(files["calm"], "--tuning", _tuned(tmp_path, text)))
    assert words in error.message
    assert error.hint


def test_a_saved_plan_binds_the_page_to_its_state(tmp_path: Path) -> None:
    stack = Stack(tmp_path / "stack", aws=False)
    stack.pretend_applied(stack.plan('resource "terraform_data" "a" {}'))
    (tmp_path / "plan.json").write_bytes(stack.plan('resource "terraform_data" "b" {}'))
    saved = str(stack.folder / "plan.tfplan")
    report: Any = json.loads(
        _run(
            str(tmp_path / "plan.json"), "--plan-file", saved, "--commit", "abc", "--stack", "one", "--format", "json"
        ).stdout
    )
    assert report["state_serial"] == 7
    assert report["state_lineage"].startswith("5a6ef1f0-")
    assert len(report["plan_file_sha256"]) == len(report["plan_json_sha256"]) == 64
    assert (report["stack"], report["commit"]) == ("one", "abc")
    page = _run(str(tmp_path / "plan.json"), "--plan-file", saved, "--commit", "abc", "--stack", "one").stdout
    assert f"<!-- sagefit:plan stack=one sha=abc plan={report['plan_file_sha256'][:16]} v=1 -->" in page
    assert f"serial 7 of `{report['state_lineage']}`" in page


PAGE = ROOT / "docs" / "review.md"


def test_the_settings_on_the_page_are_read(tmp_path: Path) -> None:
    example = PAGE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    settings = load_tuning(Path(_tuned(tmp_path, example)))
    assert settings.fail_on == "high"
    assert settings.suppress[0].matches("stateful-destroy", "aws_s3_bucket.old")
    assert {line.split(":")[0] for line in example.splitlines() if re.match(r"\w", line)} == set(Tuning.model_fields)


def test_every_rule_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    explained = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| <a id=")}
    assert list(explained) == list(rules())
    for rule in rules().values():
        assert f'<a id="{rule.id}"></a>' in explained[rule.id]
        assert f"| {rule.severity} |" in explained[rule.id]
        assert rule.title in explained[rule.id]
        assert rule.reason in explained[rule.id]

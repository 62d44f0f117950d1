"""The state machine that Terraform renders tells what Python and the launcher tell."""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from checkout import copy_tree
from corpus.scoring import SPLITS, as_reason, by_itself, load
from sagefit.failures import diagnose, table
from sagefit.paths import home
from sagefit.toolchain import terraform_binary, terraform_environment
from sagefit_launcher import verdict
from sagefit_launcher.patterns import CREATE_ERROR, REASON, SECONDARY_STATUS, Pattern

KEPT = 1024  # characters that SageMaker keeps of a failure reason
LIMIT = 1_000_000  # bytes of a definition, Step Functions' own limit
# Of a worker that is gone the launcher says nothing by its words: it knows whether the host's memory was full.
LOST_WORKERS = ("BrokenProcessPool: ", "WorkerCrashedError: ")
EXAMPLES = [(row, example) for row in table() for example in row.examples]


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The states of a job, as Terraform plans them with a mocked provider."""
    tree = tmp_path_factory.mktemp("tree")
    copy_tree(tree)
    module = tree / "modules" / "training-job"
    given = (module / "tests/machine.tftest.hcl").read_text(encoding="utf-8").split('\nrun "')[0]
    (module / "tests/rendered.tftest.hcl").write_text(f'{given}\nrun "rendered" {{\n  command = plan\n}}\n', "utf-8")
    _terraform(module, "init", "-backend=false")
    lines = _terraform(module, "test", "-json", "-verbose", "-filter=tests/rendered.tftest.hcl").splitlines()
    plan = next(event["test_plan"] for event in map(json.loads, lines) if event["type"] == "test_plan")
    found: dict[str, Any] = plan["output_changes"]["definition"]["after"]["States"]
    return found


def _terraform(module: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "AWS_"))}
    environment |= terraform_environment(home()) | {"AWS_REGION": "us-east-1", "NO_COLOR": "1"}
    command = [str(terraform_binary(home())), f"-chdir={module}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


def told(states: dict[str, Any], state: str, job: dict[str, str]) -> str:
    """The class that a Choice state leads to, interpreted as the embedded cloud does."""
    while "Choices" in states[state]:
        rules = states[state]["Choices"]
        state = next((rule["Next"] for rule in rules if _holds(rule, job)), states[state]["Default"])
        if state == "no reason":
            job, state = job | {"FailureReason": job["SecondaryStatus"]}, states[state]["Next"]
    return str(states[state]["Result"])


def _holds(rule: dict[str, Any], job: dict[str, str]) -> bool:
    if "Not" in rule:
        return not _holds(rule["Not"], job)
    given = job.get(rule["Variable"].removeprefix("$.job."))
    if "IsPresent" in rule:
        return (given is not None) is bool(rule["IsPresent"])
    assert given is not None  # to read what is absent ends a run
    if "StringEquals" in rule:
        return bool(given == rule["StringEquals"])
    return fnmatch.fnmatchcase(given, rule["StringMatches"])


def failed(reason: str) -> dict[str, str]:
    return {"TrainingJobStatus": "Failed", "SecondaryStatus": "Failed", "FailureReason": reason[:KEPT]}


def in_the_machine(states: dict[str, Any], row: Pattern, example: str) -> tuple[str, str]:
    """What the state machine tells of an example, and what Python does."""
    if row.where == CREATE_ERROR:
        answer = told(states, "classify refusal", {"TrainingJobStatus": "Refused", "FailureReason": example})
        return answer, diagnose(create_error=example).failure_class
    if row.where == SECONDARY_STATUS:
        answer = told(states, "classify", {"TrainingJobStatus": "Stopped", "SecondaryStatus": example})
        return answer, diagnose(secondary_status=example).failure_class
    return told(states, "classify", failed(example)), diagnose(example, secondary_status="Failed").failure_class


def test_the_three_agree_on_every_example(states: dict[str, Any]) -> None:
    seen = [(row, text) for row, text in EXAMPLES if row.where in (*REASON, CREATE_ERROR, SECONDARY_STATUS)]
    for row, example in seen:
        assert in_the_machine(states, row, example) == (row.failure_class, row.failure_class), example
        if row.where in REASON:
            by_words, diagnosed = verdict.last_words(example.splitlines())[0], diagnose(log=example.splitlines())
            lost = any(name in example for name in LOST_WORKERS)
            assert by_words == ("code" if lost else diagnosed.failure_class)
            assert not lost or diagnosed.failure_class == row.failure_class


def test_the_machine_believes_the_launcher(states: dict[str, Any]) -> None:
    """Whatever row tells the launcher, its own words carry the class to the state machine."""
    for row, example in EXAMPLES:
        failure_class, said = verdict.last_words(example.splitlines())
        reason = f"AlgorithmError: sagefit: {failure_class}: train.py ended with exit code 1: {said}, exit code: 1"
        assert told(states, "classify", failed(reason)) == failure_class, row.glob
        assert diagnose(reason).failure_class == failure_class


def test_the_machine_by_itself_is_as_good_as_the_page_says(states: dict[str, Any]) -> None:
    """The page's figures come from the table alone, so the rendered rules must give the same answers."""
    for split in SPLITS:
        for text in load(split):
            assert told(states, "classify", failed(as_reason(text))) == by_itself(text), text.source


def test_the_machine_knows_less_but_nothing_else(states: dict[str, Any]) -> None:
    texts = [text for split in SPLITS for text in load(split) if text.reason]
    answers = [(told(states, "classify", failed(text.reason or "")), text) for text in texts]
    other = [
        (answer, text.source) for answer, text in answers if answer not in (text.diagnosis().failure_class, "code")
    ]
    assert not other


def test_the_definition_stays_small(states: dict[str, Any]) -> None:
    assert len(json.dumps(states["classify"])) < LIMIT / 20
    assert all("$" not in rule.get("StringMatches", "") for rule in states["classify"]["Choices"])
    rows = sum(row.where in (*REASON, SECONDARY_STATUS) for row in table())
    assert len(states["classify"]["Choices"]) == 1 + rows + 1

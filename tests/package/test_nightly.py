"""The project's own workflow: a new clone on every supported Python, with no more rights than to read it."""

from __future__ import annotations

import re
from typing import Any

import yaml

from sagefit.paths import ROOT

PATH = ROOT / ".github" / "workflows" / "nightly.yml"
TEXT = PATH.read_text(encoding="utf-8")
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
TRIGGERS = WORKFLOW[True]  # YAML 1.1 reads the key ``on`` as true
USES = r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"


def steps() -> list[dict[str, Any]]:
    """The steps of all jobs."""
    return [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_nobody_outside_starts_it_and_it_may_only_read() -> None:
    assert set(TRIGGERS) == {"schedule", "workflow_dispatch"}
    assert WORKFLOW["permissions"] == {}
    assert [job["permissions"] for job in WORKFLOW["jobs"].values()] == [{"contents": "read"}] * 3
    assert "secrets" not in TEXT


def test_actions_are_pinned_by_digest_and_are_those_of_the_examples() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) == 6
    examples = "".join(path.read_text("utf-8") for path in (ROOT / "examples" / "gitops" / "github").glob("*.yml"))
    for each in used:
        assert re.fullmatch(USES, each)
        assert each in examples
    for step in steps():
        if "checkout@" in step.get("uses", ""):
            assert step["with"] == {"persist-credentials": False}


def test_every_supported_python_has_its_own_clone() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    oldest = re.search(r'requires-python = ">=(3\.\d+)"', pyproject)
    makefile = re.findall(r"python(3\.\d+)", (ROOT / "Makefile").read_text("utf-8"))
    tried = WORKFLOW["jobs"]["new-clone"]["strategy"]["matrix"]["python"]
    assert oldest
    assert tried[0] == oldest[1]
    assert set(tried) == set(makefile)  # those that setup looks for


def test_it_runs_what_a_person_runs() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    scripts = [step["run"] for step in steps() if "run" in step]
    assert scripts == ["make setup", "make lint", "make test-fast", "make test", "make test-full", 'make "$WHAT"']
    slow = WORKFLOW["jobs"]["worth"]["strategy"]["matrix"]["what"]
    assert {*slow, *(script.removeprefix("make ") for script in scripts[:-1])} <= set(targets)

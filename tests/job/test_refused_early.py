"""Any wrong job file is refused before Terraform starts, with the field, the line and the rule."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_runner import Sagefit
from job_files import write_job
from job_strategies import STYLES, Spec, any_job, jobs, prepare, write_spec
from sagefit import deploy
from sagefit.cli import app
from sagefit.errors import INVALID, SagefitError
from sagefit.platform import Platform

MISTAKES: list[tuple[str, Any, str]] = [
    ("colour", "red", "unknown key"),
    ("platform", None, "must be text"),
    ("name", "Not A Name", "does not have the right form"),
    ("description", 3, "must be text"),
    ("code.source_dir", "nowhere", "does not exist"),
    ("code.entry_point", "../train.py", "no file"),
    ("code.arguments", ["two\nlines"], "one line"),
    ("image", {"framework": "sklearn"}, "no version"),
    ("image", {"uri": "a", "algorithm": "b", "version": "1"}, "exactly one of"),
    ("inputs", {"code": "s3://bucket/"}, "used by Sagefit itself"),
    ("inputs", {"train": "s3://Bucket!"}, "no S3 uri"),
    ("inputs", {"train": "/nowhere/data"}, "does not exist"),
    ("hyperparameters", {"prompt": "two\nlines"}, "one line"),
    ("hyperparameters", {"prompt": "x" * 2501}, "2501 characters"),
    ("hyperparameters", {"rate": float("nan")}, "finite number"),
    ("environment", {"A-B": "x"}, "letters, digits and underscores"),
    ("environment", {"DB_PASSWORD": "correct-horse"}, "looks like a secret"),
    ("tags", {"team": 3}, "must be text"),
    ("metrics", [{"name": "loss"}], "is required"),
    ("schedule", "every day", "rate(1 day)"),
    ("max_price", 0, "must be above 0"),
    ("resources.max_runtime", "soon", "no duration"),
    ("resources.max_runtime", "29d", "above the limit"),
    ("resources.instance_count", "2", "whole number"),
    ("resources.instance_type", "ml.m5.lrage", "did you mean ml.m5.large?"),
    ("resources.volume_size_gb", 0, "below the least value"),
    ("attempts.0.spot", True, "needs max_wait"),
    ("attempts.0.instance_type", "ml.nothing", "no instance type"),
    ("attempts.0.next", {"disk": "nowhere"}, "no attempt is named"),
    ("attempts.0.next", {"gravity": "nowhere"}, "is not one of"),
    ("attempts.0.nxt", {}, "did you mean next?"),
    ("attempts", [], "the list is empty"),
]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Whether anybody started ``terraform``, which here is a script that notes it and does nothing."""
    note, script = tmp_path / "started", tmp_path / "bin" / "terraform"
    script.parent.mkdir()
    answer = '{"terraform_version": "1.11.4"}'
    script.write_text(f"#!/bin/sh\necho $1 >> {note}\necho '{answer}'\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path / "home"))
    return note.exists


def test_a_wrong_job_file_is_refused_before_terraform(tmp_path: Path, started: Callable[[], bool]) -> None:
    """The complaint names the file, a line of the field or of what is around it, the field and the rule."""
    prepare(tmp_path)

    @any_job
    @given(jobs(), st.sampled_from(MISTAKES), STYLES)
    def refused(spec: Spec, mistake: tuple[str, Any, str], style: dict[str, Any]) -> None:
        field, value, rule = mistake
        path = write_spec(tmp_path, changed(spec, field, value), **style | {"default_style": None})
        for command in ("plan", "run"):
            with pytest.raises(SagefitError) as caught:
                app([command, str(path)], standalone_mode=False)
            assert caught.value.exit_code == INVALID
            name = re.sub(r"\.(\d+)", r"[\1]", field)
            blocks = re.split(rf"^(?={re.escape(str(path))})", caught.value.message, flags=re.MULTILINE)
            mine = [block for block in blocks if re.match(rf"{re.escape(str(path))}:\d+: {re.escape(name)}", block)]
            assert rule in "".join(mine), caught.value.message

    refused()
    assert not started()


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_repository_in_the_data_is_refused_before_terraform(
    tmp_path: Path, started: Callable[[], bool], command: str
) -> None:
    path = write_job(tmp_path)
    (tmp_path / "data" / ".git").mkdir()
    (tmp_path / "data" / ".git" / "config").touch()
    with pytest.raises(SagefitError, match="holds a Git repository, \\.git") as caught:
        app([command, str(path)], standalone_mode=False)
    assert caught.value.exit_code == INVALID
    assert not started()


def changed(spec: Spec, field: str, value: Any) -> Spec:
    """A copy with one field changed; parts that are not there are made."""
    copy: Spec = json.loads(json.dumps(spec))
    *parents, last = field.split(".")
    at: Any = copy
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    at[last] = value
    return copy


def test_the_command_line_refuses_it_too(tmp_path: Path, started: Callable[[], bool]) -> None:
    job = write_job(tmp_path, {"colour": "red"})
    done = Sagefit(tmp_path / "home")("plan", job, check=INVALID, PATH=os.environ["PATH"])
    line = job.read_text(encoding="utf-8").splitlines().index("colour: red") + 1
    assert f"{job}:{line}: colour: unknown key" in done.err
    assert not started()


def test_a_right_one_does_start_terraform(
    tmp_path: Path, started: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the script would have noticed. Only the platform, which lies in AWS, is made up; the script saves no plan."""
    document = {"schema_": 1, "name": "dev", "partition": "aws", "region": "us-east-1", "account_id": "1" * 12}
    buckets = {"data": "d", "artifacts": "a", "checkpoints": "c"}
    monkeypatch.setattr(deploy, "load_platform", lambda _: Platform(**document, buckets=buckets))  # type: ignore[arg-type]
    app(["plan", str(write_job(tmp_path))], standalone_mode=False)
    assert started()

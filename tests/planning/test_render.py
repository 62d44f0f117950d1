"""Rendering: Terraform reads back what the job said, equal jobs give equal bytes, nobody's edits are lost."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from job_files import write_job
from sagefit import toolchain
from sagefit.errors import REFUSED, SagefitError
from sagefit.job import Job, load_job
from sagefit.job.load import job_files
from sagefit.paths import home
from sagefit.planning import hcl, plan
from sagefit.planning.rendered import check_rendered, write

# What YAML and SageMaker can carry: any text but surrogates and control characters other than newline and tab.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"), max_size=60)
TRAPS = [
    '${file("/etc/passwd")}',
    "%{ if true }x%{ endif }",
    "$${a}",
    "$$${a}",
    "%%{",
    '"',
    "\\",
    "\\n",
    "a\nb",
    "EOF",
    "☃\u2028",
    "#",
    "//",
]


def job_with(tmp_path: Path, texts: list[str]) -> Job:
    tmp_path.mkdir(exist_ok=True)
    return load_job(str(write_job(tmp_path, {"environment": {f"h{i}": t for i, t in enumerate(texts)}})))


def terraform_reads(folder: Path, tfvars: str) -> dict[str, object]:
    """What Terraform makes of a tfvars file, through ``terraform console``."""
    folder.mkdir(exist_ok=True)
    (folder / "main.tf").write_text('variable "environment" {\n  type = map(string)\n}\n', encoding="utf-8")
    (folder / "x.tfvars").write_text(tfvars, encoding="utf-8")
    done = subprocess.run(
        [toolchain.terraform_binary(home()), "console", "-var-file=x.tfvars"],
        input="base64encode(jsonencode(var.environment))\n",
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=toolchain.terraform_environment(home()) | {"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(base64.b64decode(done.stdout.strip().splitlines()[-1].strip('"')))
    return result


def test_terraform_reads_back_every_trap(tmp_path: Path) -> None:
    job = job_with(tmp_path, TRAPS)
    assert terraform_reads(tmp_path / "tf", plan(job).text) == {f"h{i}": t for i, t in enumerate(TRAPS)}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXT, min_size=20, max_size=40))
def test_terraform_reads_back_any_text(tmp_path: Path, texts: list[str]) -> None:
    body = "environment = " + hcl.literal({f"h{i}": t for i, t in enumerate(texts)}) + "\n"
    # Terraform holds every string in Unicode normal form C.
    expected = {f"h{i}": unicodedata.normalize("NFC", t) for i, t in enumerate(texts)}
    assert terraform_reads(tmp_path / "tf", body) == expected


def test_rendering_is_deterministic_and_blind_to_key_order(tmp_path: Path) -> None:
    first = plan(load_job(str(write_job(tmp_path, {"hyperparameters": {"a": 1, "b": 2}})))).text
    again = plan(load_job(str(write_job(tmp_path, {"hyperparameters": {"b": 2, "a": 1}})))).text
    assert first == again


def test_the_rendered_file_is_formatted_as_terraform_would(tmp_path: Path) -> None:
    changes = {
        "environment": {"TEXT": '${x} "q"', "NUMBER": 3},
        "attempts.0.reason": 'first line\nsecond = "line" ${x}',
        "resources.warm_pool": "10m",
        "schedule": "rate(1 day)",
        "tags": {"team": "vision"},
        "metrics": [{"name": "accuracy", "regex": "accuracy=([0-9.]+)"}],
    }
    path, changed = write(plan(load_job(str(write_job(tmp_path, changes)))))
    assert changed
    done = subprocess.run(
        [toolchain.terraform_binary(home()), "fmt", "-check", "-diff", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_reason_cannot_leave_its_comment(tmp_path: Path) -> None:
    text = plan(load_job(str(write_job(tmp_path, {"attempts.0.reason": "x\nevil = 1\r\nmore\u2028end"})))).text
    assert not [line for line in text.splitlines() if line.startswith(("evil", "more", "end"))]


def test_each_attempt_carries_its_reason_as_a_comment(tmp_path: Path) -> None:
    text = plan(load_job(str(write_job(tmp_path, {"attempts.0.reason": "The cheapest"})))).text
    assert "# 0: ml.m5.large, at most 20 min. The cheapest\n" in text


def test_an_unchanged_file_is_left_alone(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path)))
    write(plan(job))
    before = job.tfvars.stat().st_mtime_ns
    assert write(plan(job)) == (job.tfvars, False)
    assert job.tfvars.stat().st_mtime_ns == before


def test_a_changed_job_replaces_its_own_render(tmp_path: Path) -> None:
    write(plan(load_job(str(write_job(tmp_path)))))
    _, changed = write(plan(load_job(str(write_job(tmp_path, {"hyperparameters.epochs": 9})))))
    assert changed


@pytest.mark.parametrize("edit", ["append", "foreign", "body"])
def test_a_file_edited_by_hand_is_refused_and_kept(tmp_path: Path, edit: str) -> None:
    job = load_job(str(write_job(tmp_path)))
    path, _ = write(plan(job))
    text = path.read_text(encoding="utf-8")
    edited = {
        "append": text + 'tags = { a = "b" }\n',
        "foreign": 'name = "mine"\n',
        "body": text.replace("ml.m5.xlarge", "ml.m5.4xlarge"),
    }[edit]
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(SagefitError, match="not replaced") as caught:
        write(plan(load_job(str(write_job(tmp_path, {"hyperparameters.epochs": 9})))))
    assert caught.value.exit_code == REFUSED
    assert path.read_text(encoding="utf-8") == edited


def test_check_fails_when_the_file_is_missing_or_stale(tmp_path: Path) -> None:
    job = load_job(str(write_job(tmp_path)))
    with pytest.raises(SagefitError, match="does not exist"):
        check_rendered(plan(job))
    write(plan(job))
    check_rendered(plan(job))
    with pytest.raises(SagefitError, match="is out of date"):
        check_rendered(plan(load_job(str(write_job(tmp_path, {"hyperparameters.epochs": 9})))))


def test_paths_are_relative_to_the_job_root(tmp_path: Path) -> None:
    text = plan(load_job(str(write_job(tmp_path)))).text
    line = next(line for line in text.splitlines() if "source_dir" in line)
    assert (Path("job") / line.split('"')[1]).resolve() == (tmp_path / "src").resolve() or line.split('"')[1].endswith(
        "/src"
    )


@pytest.mark.parametrize("file", job_files(), ids=lambda file: file.name)
def test_committed_renders_are_up_to_date(file: Path) -> None:
    check_rendered(plan(load_job(str(file))))


def test_terraform_is_there() -> None:
    assert shutil.which(str(toolchain.terraform_binary(home())))

"""Variables of a job that take the container from those who approved it: refused, or told on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_runner import Sagefit
from job_files import write_job
from sagefit.errors import INVALID, SagefitError
from sagefit.job import load_job
from security.conftest import note

RESERVED = {
    "SAGEFIT_ML_ROOT": "Sagefit sets names that begin so",
    "SAGEFIT_TORCH_PEAKS": "Sagefit sets names that begin so",
    "SM_CHANNEL_TRAIN": "SageMaker and the launcher set it",
    "TRAINING_JOB_NAME": "SageMaker and the launcher set it",
    "AWS_PROFILE": "it would change whose rights the container has",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "it would change whose rights the container has",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT": "it would change whose rights the container has",
}
HOSTILE = {
    "LD_PRELOAD": "/opt/ml/input/data/train/evil.so",
    "BASH_ENV": "/opt/ml/input/data/train/evil.sh",
    "PATH": "/opt/ml/input/data/train",
    "PYTHONPATH": "/opt/ml/input/data/train",
    "HTTPS_PROXY": "http://collector.example:3128",
    "PIP_INDEX_URL": "https://collector.example/simple",
}
STEP: dict[str, Any] = {
    "name": "clean",
    "image": {"framework": "sklearn", "version": "1.2-1"},
    "code": {"source_dir": "src", "entry_point": "train.py"},
    "outputs": ["clean"],
    "resources": {"instance_type": "ml.m5.large"},
}


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_refused(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    attempts = [{"name": "one", "instance_type": "ml.m5.large", "environment": {name: "/x"}}]
    places: dict[str, dict[str, Any]] = {
        f"environment.{name}": {f"environment.{name}": "/x"},
        f"attempts[0].environment.{name}": {"attempts": attempts},
        f"processing[0].environment.{name}": {"processing": [STEP | {"environment": {name: "/x"}}]},
    }
    for field, changes in places.items():
        path = write_job(tmp_path, changes)
        with pytest.raises(SagefitError) as caught:
            load_job(str(path))
        assert caught.value.exit_code == INVALID
        lines = path.read_text(encoding="utf-8").splitlines()
        line = next(number for number, text in enumerate(lines, start=1) if name in text)
        wanted = f"{path}:{line}: {field}: no job sets this variable: {RESERVED[name]}\n  rename it, or remove it"
        assert wanted in caught.value.message
    note(request, f"{name} in the environment of a job, an attempt, a step", "nothing dangerous found", "refused")


@pytest.mark.parametrize(
    "name",
    [
        *("SAGEFIT_TORCHRUN", "SAGEFIT_PROCESSES_PER_HOST", "SAGEFIT_STOP_GRACE_SECONDS", "SAGEFIT_ON_LEAK"),
        "SAGEFIT_CUT_OFF",
    ],
)
def test_what_is_a_job_s_to_set_is_taken(name: str, tmp_path: Path) -> None:
    load_job(str(write_job(tmp_path, {f"environment.{name}": "2"})))


@pytest.mark.xdist_group("security-platform")
def test_hostile_variables_are_on_the_page(sagefit: Sagefit, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    job = write_job(tmp_path, {"name": "hostile", "environment": HOSTILE, "code.arguments": ["--quick"]})
    report = json.loads(sagefit("review", job, "--format", "json").out)
    assert report["verdict"] == "review needed"
    found = {each["message"]: each["severity"] for each in report["findings"] if each["rule"] == "job-environment"}
    for name, value in HOSTILE.items():
        ((message, severity),) = [each for each in found.items() if f"environment.{name}:" in each[0]]
        assert f"not set → {value}" in message
        assert severity == ("high" if name in ("LD_PRELOAD", "BASH_ENV") else "medium")
        note(request, f"{name} in the environment of a job", "nothing dangerous found", f"a finding ({severity})")
    told = {each["field"]: each["after"] for each in report["jobs"][0]["changes"]}
    assert told["code.entry_point"] == "train.py"
    assert told["code.arguments"] == "--quick"
    assert told["hyperparameters.epochs"] == "3"
    assert told["environment.LD_PRELOAD"] == "(not shown)"
    note(request, "entry point, arguments, hyperparameters of a new job", "not on the page", "on the page")

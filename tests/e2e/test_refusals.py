"""Refusals that need no cloud: exit code 2, the knob named, nothing created."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_runner import Sagefit
from job_files import write_job


def test_without_the_embedded_cloud(nowhere: Sagefit, tmp_path: Path) -> None:
    done = nowhere("run", write_job(tmp_path), "--yes", check=2)
    assert "the embedded cloud is not running" in done.err
    assert "sagefit cloud up" in done.err
    assert not list(tmp_path.glob("*.tfvars"))


def test_an_unknown_cloud(nowhere: Sagefit, tmp_path: Path) -> None:
    assert "CLOUD=mars" in nowhere("plan", write_job(tmp_path), check=2, CLOUD="mars").err


def test_an_invalid_job_file(nowhere: Sagefit, tmp_path: Path) -> None:
    done = nowhere("render", write_job(tmp_path, {"colour": "red"}), check=2)
    assert "colour: unknown key" in done.err
    assert not list(tmp_path.glob("*.tfvars"))


def test_an_edited_render(nowhere: Sagefit, tmp_path: Path) -> None:
    job = write_job(tmp_path)
    nowhere("render", job)
    with (tmp_path / "digits.tfvars").open("a", encoding="utf-8") as file:
        file.write("tags = {}\n")
    assert "edited by hand" in nowhere("render", write_job(tmp_path, {"hyperparameters.epochs": 4}), check=4).err


def test_usage(nowhere: Sagefit) -> None:
    nowhere("nonsense", check=2)
    nowhere("render", check=2)
    assert "Usage" in nowhere("--help").out


def test_plain_output_has_no_colour(nowhere: Sagefit, tmp_path: Path) -> None:
    done = nowhere("render", write_job(tmp_path, {"colour": "red"}), check=2, FORCE_COLOR="")
    assert "\x1b[" not in done.err


def test_no_aws_account_is_said_clearly(tmp_path: Path) -> None:
    aws = Sagefit(
        tmp_path / "home",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_REGION="eu-west-1",
        AWS_SHARED_CREDENTIALS_FILE="/dev/null",
    )
    done = aws("plan", write_job(tmp_path), check=2)
    assert "CLOUD=local" in done.err


@pytest.mark.parametrize(
    "command", ["size", "render", "plan", "apply", "start", "watch", "stop", "runs", "run", "diagnose", "destroy"]
)
def test_every_command_has_help(nowhere: Sagefit, command: str) -> None:
    assert "Usage" in nowhere(command, "--help").out

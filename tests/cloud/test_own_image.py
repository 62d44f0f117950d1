"""``sagefit image``: what an engine is told, what is pinned, and what a plan asks for then.

The engine is a stand-in (`engine_stand_in`); the registry's API is the embedded cloud's.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli_runner import Done, Sagefit
from cloud.aws_user import Aws
from cloud.engine_stand_in import StandIn, install
from job_files import write_job
from sagefit.errors import FAILED, INVALID, SagefitError
from sagefit.job import load_job
from sagefit.job.pinned import pin_path
from sagefit.planning import plan

REPOSITORY = "sagefit-dev"
HOST = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
Publish = Callable[..., Done]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job with an own image."""
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").write_text("FROM python:3.12.11-slim-bookworm\n", encoding="utf-8")
    return write_job(tmp_path, {"image": {"repository": "", "tag": "1", "build": "image"}})


@pytest.fixture
def publish(tmp_path: Path, job: Path, aws: Aws) -> Iterator[Publish]:
    """The command on AWS, which here is the embedded cloud with a platform's repository, and on PATH one folder."""
    aws.client("ecr").create_repository(repositoryName=REPOSITORY, imageTagMutability="IMMUTABLE")
    document = {
        "schema": 1,
        "name": "dev",
        "partition": "aws",
        "region": "us-east-1",
        "account_id": "123456789012",
        "buckets": {"data": "data", "artifacts": "artifacts", "checkpoints": "checkpoints"},
        "repository_url": f"{HOST}/{REPOSITORY}",
    }
    aws.client("ssm").put_parameter(Name="/sagefit/dev", Value=json.dumps(document), Type="String", Overwrite=True)
    sagefit = Sagefit(tmp_path / "home", **aws.environment, PATH=str(tmp_path / "bin"))
    yield lambda check=0: sagefit("image", job, check=check, cwd=tmp_path)
    aws.client("ecr").delete_repository(repositoryName=REPOSITORY, force=True)


def rendered(job: Path) -> str:
    """The tfvars of the job."""
    return plan(load_job(str(job))).text


def test_an_image_is_built_pushed_and_pinned(publish: Publish, job: Path, aws: Aws, tmp_path: Path) -> None:
    engine = install(tmp_path / "bin")
    done = publish()
    info, build, login, push = engine.calls
    assert info["argv"] == ["info"]
    reference = build["argv"][4]
    assert build["argv"] == ["build", "--platform", "linux/amd64", "--tag", reference, str(tmp_path / "image")]
    assert build["settings"] == {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1", "BUILDAH_FORMAT": "docker"}
    assert login["argv"] == ["login", "--username", "AWS", "--password-stdin", HOST]
    token = aws.client("ecr").get_authorization_token()["authorizationData"][0]["authorizationToken"]
    assert f"AWS:{login['stdin']}" == base64.b64decode(token).decode()
    assert push["argv"] == ["push", reference]
    assert reference.startswith(f"{HOST}/{REPOSITORY}:1-")

    (image,) = aws.client("ecr").describe_images(repositoryName=REPOSITORY)["imageDetails"]
    assert done.out.strip() == image["imageDigest"]
    assert f'digest     = "{image["imageDigest"]}"' in rendered(job)
    assert "tag " not in rendered(job)


def test_a_password_is_in_no_argument_and_no_output(publish: Publish, tmp_path: Path) -> None:
    engine = install(tmp_path / "bin")
    done = publish()
    passwords = {call["stdin"] for call in engine.calls if call["stdin"]}
    assert len(passwords) == 1
    for password in passwords:
        assert password not in json.dumps([call["argv"] for call in engine.calls])
        assert password not in done.out + done.err


def test_what_is_in_the_repository_is_not_built_again(publish: Publish, job: Path, tmp_path: Path) -> None:
    engine = install(tmp_path / "bin")
    first = publish()
    pin_path(load_job(str(job))).unlink()
    engine.program.unlink()  # nor is an engine needed
    again = publish()
    assert again.out == first.out
    assert "is there already" in again.err


def test_changed_sources_are_told_and_get_an_image_of_their_own(publish: Publish, job: Path, tmp_path: Path) -> None:
    install(tmp_path / "bin")
    first = publish()
    assert "older than its sources" not in rendered(job)
    (tmp_path / "image" / "Dockerfile").write_text("FROM python:3.13.5-slim-bookworm\n", encoding="utf-8")
    assert "# image.build: the pinned image is older than its sources in 'image'" in rendered(job)
    second = publish()
    assert second.out != first.out
    assert second.out.strip() in rendered(job)
    assert "older than its sources" not in rendered(job)


def test_without_an_engine_the_error_names_some_and_planning_works(publish: Publish, job: Path) -> None:
    done = publish(check=FAILED)
    assert "none of docker, podman, finch is on PATH" in done.err
    assert "planning works without one" in done.err
    text = rendered(job)
    assert 'image = { repository = "", tag = "1" }' in text
    assert "# image.build: no image of 'image' is pinned yet" in text


def test_an_engine_that_does_not_answer_is_passed_over(publish: Publish, tmp_path: Path) -> None:
    install(tmp_path / "bin", "docker", broken="info")
    done = publish(check=FAILED)
    assert "docker does not answer (Cannot connect to the Docker daemon." in done.err
    podman: StandIn = install(tmp_path / "bin", "podman")
    publish()
    assert [call["argv"][0] for call in podman.calls] == ["info", "build", "login", "push"]


def test_a_build_that_fails_pins_nothing(publish: Publish, job: Path, tmp_path: Path) -> None:
    engine = install(tmp_path / "bin", broken="build")
    done = publish(check=FAILED)
    assert "docker build ended with 1" in done.err
    assert [call["argv"][0] for call in engine.calls] == ["info", "build"]
    assert not pin_path(load_job(str(job))).exists()


def test_a_damaged_pin_is_refused(job: Path) -> None:
    pin_path(load_job(str(job))).write_text('{"schema": 1, "image": {"tag": "1"}}', encoding="utf-8")
    with pytest.raises(SagefitError, match="not a file of a pinned image") as caught:
        rendered(job)
    assert caught.value.exit_code == INVALID
    assert "sagefit image" in (caught.value.hint or "")


def test_the_embedded_cloud_has_no_registry(job: Path, cloud_home: Path, aws: Aws) -> None:
    done = Sagefit(cloud_home)("--cloud", "local", "image", job, check=FAILED)
    assert "the embedded cloud has no registry" in done.err
    assert aws.endpoint  # it does run


def test_a_job_without_an_own_image_has_nothing_to_build(publish: Publish, job: Path, tmp_path: Path) -> None:
    write_job(tmp_path)
    done = publish(check=INVALID)
    assert "image.build: this job builds no image" in done.err
    assert job.name in done.err

"""What stands in the way of destroying a platform: Terraform would stop half-way, with alarms and roles gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sagefit.console import command
from sagefit.errors import REFUSED, SagefitError

# What AWS lists in one answer is enough to say that something is there.
_OBJECTS, _IMAGES = 1000, 100
_PATIENT = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=20)


@dataclass(frozen=True)
class Obstacle:
    """One thing that holds something, and what takes it out of the way; without a ``way`` it could not be looked at."""

    what: str
    way: str = ""


def refuse(planned: Mapping[str, Any], platform: str, tell: Callable[[str], None]) -> None:
    """Refuse a destroy that would stop half-way; ``planned`` is the JSON of ``terraform show`` for it.

    ``tell`` hears what AWS did not let us look at. Raises SagefitError (exit code 4) that names everything in the way.
    """
    found = list(obstacles(planned, platform))
    for each in found:
        if not each.way:
            tell(each.what)
    standing = [each for each in found if each.way]
    if standing:
        ways = dict.fromkeys(each.way for each in standing)
        raise SagefitError(
            "\n".join(
                [f"platform {platform}: nothing was destroyed, because Terraform would stop half-way:"]
                + [f"- {each.what}" for each in standing]
            ),
            hint="; ".join(ways) + f"; then again: {command('platform', 'destroy', platform)}",
            exit_code=REFUSED,
        )


def obstacles(planned: Mapping[str, Any], platform: str) -> Iterator[Obstacle]:
    """Jobs that are still applied on the platform, and its buckets and repository that hold something.

    A bucket or repository that Terraform may empty (``force_destroy``, ``force_delete``) is in nobody's way.
    """
    gone = [change for change in planned.get("resource_changes", []) if "delete" in change["change"]["actions"]]
    before = [(change["type"], change["change"]["before"] or {}) for change in gone]
    own = {values["arn"] for kind, values in before if kind == "aws_sfn_state_machine"}
    yield from _looked(f"jobs of platform {platform}", partial(_jobs, platform, own))
    for kind, values in before:
        if kind == "aws_s3_bucket" and not values.get("force_destroy"):
            yield from _looked(f"bucket {values['bucket']}", partial(_objects, values["bucket"]))
        if kind == "aws_ecr_repository" and not values.get("force_delete"):
            yield from _looked(f"repository {values['name']}", partial(_images, values["name"]))


def _looked(what: str, look: Callable[[], Iterator[Obstacle]]) -> Iterator[Obstacle]:
    try:
        yield from look()
    except (ClientError, BotoCoreError) as error:
        yield Obstacle(f"{what}: not looked at: {' '.join(str(error).split())}")


def _client(service: str) -> Any:
    make: Any = boto3.client
    return make(service, config=_PATIENT)


def applied_jobs(platform: str, own: Collection[str] = ()) -> Iterator[str]:
    """Names of the jobs that are applied on a platform; ``own`` are machines that belong to the platform itself.

    They are found by the tags of their state machines: the name of a machine leaves open where that of its platform
    ends.
    """
    machines = _client("stepfunctions")
    for page in machines.get_paginator("list_state_machines").paginate():
        for machine in page["stateMachines"]:
            if machine["stateMachineArn"] in own or not machine["name"].startswith(f"sagefit-{platform}-"):
                continue
            listed = machines.list_tags_for_resource(resourceArn=machine["stateMachineArn"])["tags"]
            tags = {tag["key"]: tag["value"] for tag in listed}
            if tags.get("sagefit:platform") == platform and "sagefit:job" in tags:
                yield tags["sagefit:job"]


def _jobs(platform: str, own: Collection[str]) -> Iterator[Obstacle]:
    for job in applied_jobs(platform, own):
        yield Obstacle(
            f"job {job} is applied on it, and cannot be destroyed without it",
            f"destroy its jobs: {command('destroy', 'JOB')}",
        )


def _objects(bucket: str) -> Iterator[Obstacle]:
    try:
        answer = _client("s3").list_object_versions(Bucket=bucket, MaxKeys=_OBJECTS)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            return
        raise
    count = len(answer.get("Versions", [])) + len(answer.get("DeleteMarkers", []))
    if count:
        yield Obstacle(
            f"bucket {bucket} holds {_counted(count, 'version', answer.get('IsTruncated', False))} of objects",
            "copy what you want to keep, and apply once with buckets = { force_destroy = true }",
        )


def _images(repository: str) -> Iterator[Obstacle]:
    try:
        answer = _client("ecr").list_images(repositoryName=repository, maxResults=_IMAGES)
    except ClientError as error:
        if error.response["Error"]["Code"] == "RepositoryNotFoundException":
            return
        raise
    count = len({image["imageDigest"] for image in answer["imageIds"]})
    if count:
        yield Obstacle(
            f"repository {repository} holds {_counted(count, 'image', 'nextToken' in answer)}",
            "apply once with repository = { force_delete = true }",
        )


def _counted(count: int, what: str, more: bool) -> str:
    return f"{count:,}{' or more' if more else ''} {what}{'' if count == 1 else 's'}"

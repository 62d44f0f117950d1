"""Rules of instance groups, with which one job runs on several instance types at once (a heterogeneous cluster).

Sources: ResourceConfig, InstanceGroup and S3DataSource (API); "Train Using a Heterogeneous Cluster" and "SageMaker
managed warm pools" of the SageMaker developer guide (DG).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sagefit.job.instance_types import type_problems
from sagefit.job.key import Key
from sagefit.job.problem import Problem

if TYPE_CHECKING:
    from sagefit.job.model import Job

MOST_GROUPS = 5
OLDEST = {"pytorch": (1, 10), "tensorflow": (2, 6)}
"""The first versions of the frameworks that AWS supports on groups (DG)."""
_GROUPS: Key = ("resources", "instance_groups")


def group_problems(job: Job) -> Iterator[Problem]:
    """Everything wrong with the groups of a job and with the channels that name them."""
    yield from _channels(job)
    if not job.resources.instance_groups:
        return
    yield from _groups(job)
    yield from _beside(job)
    yield from _attempts(job)
    yield from _image(job)


def _groups(job: Job) -> Iterator[Problem]:
    names = [group.name for group in job.resources.instance_groups]
    for index, group in enumerate(job.resources.instance_groups):
        field: Key = (*_GROUPS, index)
        if names.index(group.name) != index:
            yield Problem((*field, "name"), f"{group.name!r} is the name of an earlier group", "rename it")
        if group.instance_type == "auto":
            message = "the types of groups are written out, because Sagefit does not know what each of them does"
            yield Problem((*field, "instance_type"), message, "name the type, such as ml.m5.xlarge")
        else:
            yield from type_problems((*field, "instance_type"), group.instance_type)
    total = sum(group.instance_count for group in job.resources.instance_groups)
    if total > job.resources.instance_quota:
        yield Problem(
            _GROUPS,
            f"{total} instances together; the quota of a training job is {job.resources.instance_quota}",
            "ask for fewer, or raise resources.instance_quota when your account has more",
        )


def _beside(job: Job) -> Iterator[Problem]:
    written = job.resources.model_fields_set
    for name in ("instance_type", "instance_count"):
        if name in written:
            yield Problem(
                ("resources", name), f"a job has {name} or instance_groups, not both (API: ResourceConfig)", "keep one"
            )
    if job.resources.warm_pool:
        yield Problem(
            ("resources", "warm_pool"), "SageMaker keeps no warm pool of instance groups (DG)", "remove one of the two"
        )
    if job.tuning is not None:
        yield Problem(("tuning",), "Sagefit tunes on one instance type, not on groups", "remove one of the two")


def _attempts(job: Job) -> Iterator[Problem]:
    for index, attempt in enumerate(job.written_attempts or []):
        for name in ("instance_type", "instance_count"):
            if getattr(attempt, name) is not None:
                yield Problem(
                    ("attempts", index, name),
                    "every attempt of a job with instance groups runs on those groups",
                    "remove it, or replace resources.instance_groups by an instance_type",
                )
        if attempt.warm_pool:
            yield Problem(
                ("attempts", index, "warm_pool"),
                "SageMaker keeps no warm pool of instance groups (DG)",
                "remove it, or replace resources.instance_groups by an instance_type",
            )


def _image(job: Job) -> Iterator[Problem]:
    framework, version = job.image.framework or "", job.image.version or ""
    oldest = OLDEST.get(framework)
    numbers = re.match(r"(\d{1,6})\.(\d{1,6})", version)
    if oldest and numbers and (int(numbers[1]), int(numbers[2])) < oldest:
        yield Problem(
            ("image", "version"),
            f"{framework} {version} does not run on instance groups; {'.'.join(map(str, oldest))} is the first (DG)",
            "choose a newer version",
        )


def _channels(job: Job) -> Iterator[Problem]:
    known = [group.name for group in job.resources.instance_groups]
    naming = [name for name, channel in job.channels.items() if channel.instance_groups]
    for name, channel in job.channels.items():
        field: Key = ("inputs", name, "instance_groups")
        if channel.file_system is not None and naming:
            yield Problem(
                field if name in naming else ("inputs", name, "file_system"),
                f"{naming[0]} names instance groups, and SageMaker takes names for all inputs or for none; "
                "only data in S3 has them (API: S3DataSource)",
                "remove it, or the names" if name in naming else "bring the data from S3, or remove the names",
            )
        if not channel.instance_groups:
            continue
        unknown = [group for group in channel.instance_groups if group not in known]
        if len(channel.instance_groups) != len(set(channel.instance_groups)):
            yield Problem(field, "names a group twice", "name each once")
        if unknown:
            yield Problem(
                field,
                f"no group of resources.instance_groups is named {', '.join(map(repr, unknown))}",
                f"use {', '.join(known)}" if known else "add the groups, or remove this",
            )

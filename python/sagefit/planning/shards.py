"""Data that is dealt out to instances: each must get a part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sagefit.job import Job
from sagefit.job.problem import Problem
from sagefit.job.uploads import shipped
from sagefit.planning.planned import PlannedAttempt


def shard_problems(job: Job, attempts: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    """Local channels with fewer files than instances that share them: the rest would be paid for and idle.

    ``ShardedByS3Key`` gives every object to one instance (CreateTrainingJob, S3DataDistributionType). What lies in S3
    is not looked at.
    """
    for name, channel in job.channels.items():
        if channel.distribution != "ShardedByS3Key" or not channel.is_local:
            continue
        path = job.local(channel.uri or "")
        files = len(shipped(path, channel.exclude)) if path.is_dir() else 1
        for attempt in attempts:
            sharing = [
                group
                for group in attempt.instances
                if not channel.instance_groups or group.name in channel.instance_groups
            ]
            count = sum(group.instance_count for group in sharing)
            if count > files:
                message = (
                    f"ShardedByS3Key deals out {files} file{'s' * (files != 1)} to the {count} instances of "
                    f"{attempt.label}, and an instance without a file would be paid for and idle"
                )
                knob = (
                    "split the data into as many files, lower the instance count, or set distribution: FullyReplicated"
                )
                yield Problem(("inputs", name, "distribution"), message, knob)
                break

"""What a job's own execution role may use in S3: what the platform shares with its jobs, and the job's own objects.

``modules/training-job/execution-role.tf`` creates the role. This module checks its rules first, and names the lines of
the job file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sagefit.job.key import Key
from sagefit.job.model import Job
from sagefit.job.problem import Problem

_FIELD: Key = ("resources", "role")
_SHARED = 'or set resources.role to "shared" if the role of all jobs may use it'


def has_own_role(job: Job) -> bool:
    """Whether the job gets a role of its own: because its file says so, or because it uses no pool of the platform."""
    resources = job.resources
    return (resources.role or ("shared" if isinstance(resources.warm_pool, str) else "own")) == "own"


def role_problems(
    job: Job, *, possible: bool, readable: Collection[str], writable: Collection[str]
) -> Iterator[Problem]:
    """What a job names although its own role may not use it.

    Args:
        job: The job.
        possible: Whether the platform makes roles for single jobs; else all jobs share one, which is not judged.
        readable: ``bucket/prefix`` of what jobs of the platform may read.
        writable: The same of where this job's outputs may go.
    """
    if not possible:
        if job.resources.role == "own":
            message = f"platform {job.platform} has one role for all its jobs"
            yield Problem(_FIELD, message, "remove it, or set execution_role.per_job of the platform and apply it")
        return
    if not has_own_role(job):
        return
    named: list[tuple[Key, str | None]] = [(("inputs", name), channel.uri) for name, channel in job.channels.items()]
    for index, step in enumerate(job.processing):
        named += [(("processing", index, "inputs", name), source.uri) for name, source in step.sources.items()]
    for field, uri in named:
        if uri and uri.startswith("s3://") and not _within(uri, readable):
            yield _not_shared(job, field, uri, "its bucket")
    output = job.resources.output_s3_uri
    if output and not _within(f"{output.rstrip('/')}/", writable):
        yield _not_shared(job, ("resources", "output_s3_uri"), output, "its bucket, with access write,")


def _within(uri: str, areas: Collection[str]) -> bool:
    place = uri.removeprefix("s3://")
    return (place if "/" in place else f"{place}/").startswith(tuple(areas))


def _not_shared(job: Job, field: Key, uri: str, what: str) -> Problem:
    message = f"platform {job.platform} does not share {uri} with its jobs, so the job's own role may not use it"
    return Problem(field, message, f"correct it; list {what} in execution_role.buckets of the platform; {_SHARED}")

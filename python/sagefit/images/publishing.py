"""From a Dockerfile to a pinned digest."""

from __future__ import annotations

from collections.abc import Callable

from sagefit.errors import FAILED, SagefitError
from sagefit.images import engine
from sagefit.images.registry import Repository
from sagefit.job import Job
from sagefit.job.pinned import PinnedImage, context_digest, save_pin
from sagefit.paths import display
from sagefit.platform import Platform

_CONTEXT_DIGITS = 12


def publish(job: Job, platform: Platform, say: Callable[[str], None]) -> PinnedImage:
    """Build the image of ``job``, push it to the platform's repository, and pin its digest beside the job file.

    The tag ends in a digest of what was built, so a tag never moves, and what is there already is not built again.
    Raises SagefitError: exit code 2 where job or platform lack something, 1 where the engine does.
    """
    if job.image.build is None:
        raise SagefitError(
            f"{display(job.path)}: image.build: this job builds no image",
            hint='give image: { repository: "", tag: "1", build: FOLDER } with a Dockerfile in the folder',
        )
    if platform.repository_url is None:
        raise SagefitError(
            f"platform: {platform.name} has no repository to push to",
            hint="apply the platform with its repository, whose URL its document then has",
        )
    repository, context = Repository(platform.repository_url), context_digest(job)
    tag = f"{job.image.tag}-{context[:_CONTEXT_DIGITS]}"
    digest = repository.digest_of(tag)
    if digest:
        say(f"{repository.url}:{tag} is there already")
    else:
        _build(job, repository, f"{repository.url}:{tag}", say)
        digest = repository.digest_of(tag)
    if digest is None:
        raise SagefitError(
            f"{repository.url}:{tag} was pushed, and the repository does not have it",
            hint="look whether the engine pushes to another registry (a mirror in its settings)",
            exit_code=FAILED,
        )
    pinned = PinnedImage(tag, digest, context)
    say(f"pinned in {display(save_pin(job, pinned))}; render and commit it with the job")
    return pinned


def _build(job: Job, repository: Repository, reference: str, say: Callable[[str], None]) -> None:
    found = engine.find()
    say(f"building {reference}")
    found.build(job.local(job.image.build or "."), reference)
    found.login(repository.host, *repository.credentials())
    found.push(reference)

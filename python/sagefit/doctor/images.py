"""Whether the images of a job and its steps are in their registries. Nothing is pulled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from botocore.exceptions import ClientError

from sagefit.catalog import instances
from sagefit.console import command
from sagefit.doctor.asking import client, code_of
from sagefit.doctor.finding import Finding
from sagefit.job import Job
from sagefit.job.image_table import Family, algorithms, frameworks, is_algorithm
from sagefit.job.model import Image
from sagefit.job.pinned import load_pin
from sagefit.planning import JobPlan, PlannedAttempt
from sagefit.platform import Platform

_CHECK = "image"
_IN_ECR = re.compile(r"(\d{12})\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.[a-z0-9.-]+/([^:@]+)(?:@(.+)|:(.+))?")


@dataclass(frozen=True)
class _Address:
    """An image in Amazon ECR, by its digest or its tag."""

    account: str
    region: str
    repository: str
    digest: str | None
    tag: str | None

    def __str__(self) -> str:
        reference = f"@{self.digest}" if self.digest else f":{self.tag}"
        return f"{self.repository}{reference} of account {self.account} in {self.region}"


def check_images(plan: JobPlan, platform: Platform | None, region: str) -> Iterator[Finding]:
    """A finding for each image of a job and its steps."""
    job = plan.job
    used: list[tuple[str, Image, Sequence[PlannedAttempt]]] = [("image", job.image, plan.attempts)]
    used += [
        (f"image of {attempt.label}", Image(**step.image.model_dump()), [attempt])
        for step, attempt in zip(job.processing, plan.steps, strict=True)
    ]
    for what, image, attempts in used:
        found = list(_addresses(job, image, attempts, platform, region))
        yield from _known_without(job, what, image, found, region)
        for address in dict.fromkeys(found):
            yield _asked(address, what, platform, job)


def _known_without(job: Job, what: str, image: Image, found: Sequence[_Address], region: str) -> Iterator[Finding]:
    """What is said of an image that no registry is asked for."""
    family = _family(image)
    if found or (family and region not in family.regions(family.exact(image.version) or "")):
        return  # the registry is asked, or that the region lacks the image is said of the job
    if family or (image.uri and is_algorithm(image.uri)):
        named = f"{family.name} {family.exact(image.version)}" if family else image.uri
        yield Finding(_CHECK, "ok", f"{what}: {named} is SageMaker's own, by the table of images")
    elif image.build is not None:
        fix = command("image", job.reference)
        yield Finding(_CHECK, "fault", f"{what}: nothing was built of {image.build!r} yet", fix)
    elif image.repository == "":
        told = f"{what}: the platform's repository is not known before the platform is applied"
        yield Finding(_CHECK, "unknown", f"not asked: {told}", command("platform", "apply", job.platform))
    else:
        named = image.algorithm_arn or image.uri or image.repository
        yield Finding(_CHECK, "unknown", f"not asked: {what}: {named} is not in Amazon ECR", "look there yourself")


def _family(image: Image) -> Family | None:
    return frameworks().get(image.framework or "") or algorithms().get(image.algorithm or "")


def _addresses(
    job: Job, image: Image, attempts: Sequence[PlannedAttempt], platform: Platform | None, region: str
) -> Iterator[_Address]:
    """Where the images are that a registry can be asked for: SageMaker's own algorithms are for SageMaker alone."""
    if image.framework in frameworks() and image.framework not in algorithms():
        family = frameworks()[image.framework or ""]
        exact = family.exact(image.version) or ""
        account = family.accounts.get(region)
        for processor in {_processor(attempt) for attempt in attempts} if account else ():
            pythons = family.versions[exact]
            tag = pythons[image.python_version or max(pythons)].replace("{processor}", processor)
            yield _Address(str(account), region, family.repository, None, tag)
        return
    uri = image.uri
    if image.repository is not None and (url := image.repository or (platform and platform.repository_url)):
        pinned = load_pin(job) if image.build is not None else None
        digest = pinned.digest if pinned else image.digest
        uri = f"{url}@{digest}" if digest else f"{url}:{image.tag}"
        if image.build is not None and pinned is None:
            return
    if uri and not is_algorithm(uri) and (found := _IN_ECR.fullmatch(uri)):
        yield _Address(found[1], found[2], found[3], found[4], found[5] or (None if found[4] else "latest"))


def _processor(attempt: PlannedAttempt) -> str:
    known = (instances().get(group.instance_type) for group in attempt.instances)
    return "gpu" if any(each and each.accelerator_count for each in known) else "cpu"


def _asked(address: _Address, what: str, platform: Platform | None, job: Job) -> Finding:
    """Ask the registry: one's own without leave to pull, others as whoever pulls asks them."""
    ecr = client("ecr", address.region)
    named = {"imageDigest": address.digest} if address.digest else {"imageTag": address.tag}
    request = {"registryId": address.account, "repositoryName": address.repository, "imageIds": [named]}
    try:
        if platform and address.account == platform.account_id:
            there = ecr.describe_images(**request)["imageDetails"]
        else:
            there = ecr.batch_get_image(**request)["images"]
    except ClientError as error:
        if code_of(error) not in ("ImageNotFoundException", "RepositoryNotFoundException"):
            raise
        there = []
    if there:
        return Finding(_CHECK, "ok", f"{what}: {address}")
    fix = command("image", job.reference) if job.image.build is not None else "push it, or correct image"
    return Finding(_CHECK, "fault", f"{what}: there is no {address}", fix)

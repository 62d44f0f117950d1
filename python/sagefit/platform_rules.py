"""What a platform refuses in a job: by its network, its pools, its repository, its region, its tags.

``modules/training-job`` checks the same against the platform's document. This module checks it before Terraform starts,
and names fields and lines of the job file.
"""

from __future__ import annotations

from collections.abc import Iterator

from sagefit.job import Job
from sagefit.job.images import region_problems
from sagefit.job.key import Key
from sagefit.job.limit_rules import argument_problems, express_problems
from sagefit.job.limits import most
from sagefit.job.problem import Problem
from sagefit.job.roles import role_problems
from sagefit.job.upload_rules import outside_problems
from sagefit.planning import JobPlan, allowed_problems
from sagefit.platform import Platform


def platform_problems(plan: JobPlan, platform: Platform) -> Iterator[Problem]:
    """Everything in a planned job that its platform refuses."""
    job = plan.job
    yield from allowed_problems(plan, platform.allowed_instance_types)
    yield from region_problems(job, platform.region)
    yield from outside_problems(job, platform.upload_folders)
    yield from role_problems(
        job,
        possible=platform.job_policy_arns is not None,
        readable=platform.readable,
        writable=platform.writable(job.name),
    )
    yield from _network(job, platform)
    yield from _repository(job, platform)
    yield from _pool(plan, platform)
    tags = len(platform.tags | job.tags)
    if tags > most("tags") and len(job.tags) <= most("tags"):
        yield Problem(
            ("tags",),
            f"{tags} with those of platform {platform.name}; beside Sagefit's own a job takes {most('tags')} (API)",
            "remove some",
        )
    if platform.kms_key_arn and not job.resources.output_kms_key_arn:
        yield from express_problems(job)


def _network(job: Job, platform: Platform) -> Iterator[Problem]:
    own, network = job.resources, platform.network
    field: Key = ("resources", "network_isolation")
    if network.isolation and own.network_isolation is False:
        rule = f"platform {platform.name} runs isolated containers only"
        yield Problem(field, rule, "remove it, or choose another platform")
    if network.encrypt_inter_container_traffic and own.encrypt_inter_container_traffic is False:
        rule = f"platform {platform.name} encrypts the traffic between containers"
        yield Problem(("resources", "encrypt_inter_container_traffic"), rule, "remove it, or choose another platform")
    if network.isolation and own.network_isolation is None:
        yield from argument_problems(job, isolated=True)
    subnets = network.subnet_ids if own.subnet_ids is None else own.subnet_ids
    groups = network.security_group_ids if own.security_group_ids is None else own.security_group_ids
    if not subnets:
        for name, channel in job.channels.items():
            if channel.file_system:
                yield Problem(
                    ("inputs", name, "file_system"),
                    "EFS and FSx are reached inside a VPC, and neither the job nor its platform names one",
                    "set resources.subnet_ids and resources.security_group_ids, or the platform's network",
                )
    for name, ids in (("subnet_ids", subnets), ("security_group_ids", groups)):
        if len(ids) > (limit := most(f"resources.{name}")):
            rule = f"{len(ids)}, those of platform {platform.name}; a training job takes {limit} (API)"
            yield Problem(("resources", name), rule, "name fewer here, or at the platform")


def _repository(job: Job, platform: Platform) -> Iterator[Problem]:
    places: list[tuple[Key, str | None]] = [(("image", "repository"), job.image.repository)]
    places += [
        (("processing", index, "image", "repository"), step.image.repository)
        for index, step in enumerate(job.processing)
    ]
    for field, repository in places:
        if repository == "" and platform.repository_url is None:
            yield Problem(
                field,
                f'"" is the platform\'s own repository, and platform {platform.name} has none',
                "give the URL of a repository, or turn the platform's on",
            )


def _pool(plan: JobPlan, platform: Platform) -> Iterator[Problem]:
    """A pool keeps instances for training jobs of its shape only (SageMaker guide, warm pools)."""
    name = plan.job.resources.warm_pool
    if not isinstance(name, str):
        return
    field: Key = ("resources", "warm_pool")
    pool = platform.warm_pools.get(name)
    if pool is None:
        known = f"only {', '.join(sorted(platform.warm_pools))}" if platform.warm_pools else "no warm pools"
        rule = f"platform {platform.name} has {known}, and no pool {name!r}"
        yield Problem(field, rule, "name one of them, or declare the pool in the platform")
        return
    first = plan.attempts[0]
    asked = first.instance_type, first.instance_count, first.volume_size_gb
    if asked != (pool.instance_type, pool.instance_count, pool.volume_size_gb) or first.spot:
        spot = " on spot" if first.spot else ""
        yield Problem(
            field,
            f"the first attempt is {first.hardware}{spot} with {first.volume_size_gb} GB, and the pool {name} keeps "
            f"{pool.instance_count} x {pool.instance_type} with {pool.volume_size_gb} GB, so SageMaker "
            "would not reuse the warm instances",
            "change the first attempt or resources.volume_size_gb, or the pool",
        )

"""The text of ``NAME.tfvars``: a job and its attempts as Terraform reads them.

The first line says where the file comes from and carries the digest of everything below it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import jinja2

from sagefit.catalog.prices import REFERENCE_REGION
from sagefit.job.model import FailureClass, Image, Job, Schedule
from sagefit.job.pinned import PinnedImage, load_pin, pin_note
from sagefit.job.processing_model import Step
from sagefit.job.values import Code, Source, as_text
from sagefit.paths import JOB_ROOT
from sagefit.planning import hcl
from sagefit.planning.choose import Candidate
from sagefit.planning.planned import PlannedAttempt

HEADER = re.compile(
    r"\A# Rendered by sagefit from (?P<source>\S+)\. Edit that file, not this one\. sha256 (?P<digest>\w{16})\n"
)

_environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 - this is HCL; every value goes through hcl.literal
)


def render(job: Job, attempts: Sequence[PlannedAttempt], worst_case: str | None) -> str:
    """`JobPlan.text`, which keeps it. ``worst_case`` says what a run can cost, where that is predicted."""
    body = _environment.get_template("job.tfvars.j2").render(
        attributes=hcl.attributes,
        comment=hcl.comment,
        identity=_identity(job),
        image_note=pin_note(job),
        training=_training(job),
        resources={"resources": _resources(job)},
        worst_case=worst_case,
        attempts=[(_attempt(a), _comments(i, a)) for i, a in enumerate(attempts)],
    )
    return f"# Rendered by sagefit from {job.path.name}. Edit that file, not this one. sha256 {digest(body)}\n\n{body}"


def digest(body: str) -> str:
    """What the first line of a render says of ``body``, the lines below it."""
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _from_job_root(job: Job, relative: str) -> str:
    """A path of the job file as the ``job/`` root sees it."""
    return Path(os.path.relpath(job.local(relative), JOB_ROOT)).as_posix()


def _identity(job: Job) -> dict[str, Any]:
    fields = {"name": job.name, "platform": job.platform, "description": job.description or None}
    return _given(fields)


def _training(job: Job) -> dict[str, Any]:
    schedule = Schedule(expression=job.schedule) if isinstance(job.schedule, str) else job.schedule
    return _given(
        {
            "image": _image(job.image, load_pin(job)),
            "code": _code(job, job.code),
            "processing": [_step(job, step) for step in job.processing] or None,
            "channels": {name: _source(job, channel) for name, channel in sorted(job.channels.items())},
            "hyperparameters": {key: as_text(value) for key, value in sorted(job.hyperparameters.items())},
            "environment": {key: as_text(value) for key, value in sorted(job.environment.items())},
            "metric_definitions": [metric.model_dump() for metric in job.metrics] or None,
            "max_price": job.max_price,
            "schedule": schedule.model_dump() if schedule else None,
            "tuning": job.tuning.for_terraform() if job.tuning else None,
            "tags": dict(sorted(job.tags.items())) or None,
        }
    )


def _image(image: Image, pinned: PinnedImage | None) -> dict[str, Any]:
    """An image as Terraform takes it: what Sagefit builds is named by the digest of what was pushed."""
    fields = image.model_dump(exclude_defaults=True, exclude={"build"})
    return fields if pinned is None else {"repository": image.repository, "digest": pinned.digest}


def _code(job: Job, code: Code | None) -> dict[str, Any] | None:
    if code is None:
        return None
    return _given(code.model_dump(exclude_defaults=True) | {"source_dir": _from_job_root(job, code.source_dir)})


def _step(job: Job, step: Step) -> dict[str, Any]:
    """A processing step; what is left out has the module's own default, which is the job file's."""
    resources = step.resources.model_dump(exclude_defaults=True)
    if "max_runtime" in resources:
        resources["max_runtime_seconds"] = resources.pop("max_runtime")
    return _given(
        {
            "name": step.name,
            "image": step.image.model_dump(exclude_defaults=True),
            "code": _code(job, step.code),
            "inputs": {name: _source(job, source) for name, source in sorted(step.sources.items())} or None,
            "outputs": step.outputs,
            "environment": {key: as_text(value) for key, value in sorted(step.environment.items())} or None,
            **resources,
        }
    )


def _source(job: Job, source: Source) -> dict[str, Any]:
    """A channel, or an input of a step."""
    fields = source.model_dump(exclude_defaults=True, exclude={"uri"}, by_alias=True)
    if source.uri is None:
        return fields
    if source.is_local:
        return {"local_path": _from_job_root(job, source.uri)} | fields
    return {"s3_uri": source.uri} | fields


def _resources(job: Job) -> dict[str, Any]:
    """What holds for all attempts; what differs between them stands in each attempt."""
    own = job.resources
    pool = own.warm_pool if isinstance(own.warm_pool, str) else None
    defaults = type(own)()
    names = {
        "network_isolation": "network_isolation",
        "encrypt_inter_container_traffic": "encrypt_inter_container_traffic",
        "checkpoint_local_path": "checkpoint_local_path",
        "subnet_ids": "subnet_ids",
        "security_group_ids": "security_group_ids",
        "role": "role",
        "volume_kms_key_arn": "volume_kms_key_arn",
        "output_kms_key_arn": "output_kms_key_arn",
        "output_s3_uri": "output_s3_uri",
        "output_compression": "output_compression",
        "retry_attempts": "retry_attempts",
        "remote_debug": "remote_debug",
        "profiler": "profiler",
        "instance_quota": "instance_quota",
        "max_keep_alive": "max_keep_alive_seconds",
        "poll_interval": "poll_seconds",
    }
    changed = {tf: getattr(own, py) for py, tf in names.items() if getattr(own, py) != getattr(defaults, py)}
    return {
        "input_mode": own.input_mode,
        "checkpoints": own.checkpoints,
        **({"warm_pool": pool} if pool else {}),
        **changed,
    }


def _attempt(attempt: PlannedAttempt) -> dict[str, Any]:
    fields = _given(attempt.for_terraform())
    fields["next"] = {kind: attempt.next[kind] for kind in get_args(FailureClass) if kind in attempt.next}
    for name in ("reason", "hyperparameters", "environment", "keep_alive_seconds", "next"):
        if not fields.get(name):
            fields.pop(name, None)
    return fields


def _comments(index: int, attempt: PlannedAttempt) -> list[str]:
    """What a reviewer should know of an attempt: where it runs and why, and what is predicted for it."""
    spot = ", spot" if attempt.spot else ""
    head = f"{index}: {attempt.hardware.removeprefix('1 x ')}{spot}, at most {attempt.limit}"
    said = [f"{head}. {attempt.reason}" if attempt.reason else f"{head}."]
    fit = attempt.fit
    if fit and fit.prediction:
        usable = {"host": fit.usable_host_gib} | ({"GPU": fit.usable_gpu_gib} if fit.usable_gpu_gib else {})
        needs = {"GPU": fit.prediction.gpu, "host": fit.prediction.host}
        shares = [
            f"{need.upper:.1f} of {usable[of]:.1f} GiB per {of} ({need.upper / usable[of]:.0%})"
            for of, need in needs.items()
            if need and of in usable
        ]
        said.append(f"{fit.verdict}: at most {', '.join(shares)}; {_price(fit)}")
    return said


def _price(fit: Candidate) -> str:
    if fit.usd_per_hour is None:
        return "no price known"
    estimated = ", estimated" if fit.price and fit.price.estimated else ""
    return f"{fit.usd_per_hour:.2f} USD an hour in {REFERENCE_REGION}{estimated}"


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}

"""What is wrong with the processing steps of a job, and with what takes their outputs.

A step is a container with an image, code and data, like the job itself. So a step is checked as a job of its own, and
this module adds the rules for steps only. Sources: the CreateProcessingJob API reference; ``modules/training-job``'s
``processing.json`` for instance types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache

from sagefit.catalog import instances
from sagefit.job.image_table import processing
from sagefit.job.key import Key
from sagefit.job.limit_rules import uri_problems
from sagefit.job.limits import most
from sagefit.job.model import Channel, Image, Job, Resources
from sagefit.job.problem import Problem
from sagefit.job.processing_model import Step
from sagefit.job.rules import problems
from sagefit.job.upload_rules import not_local
from sagefit.job.values import as_text
from sagefit.paths import TRAINING_JOB_MODULE

EVENTS = "spark-events"


def step_problems(job: Job) -> Iterator[Problem]:
    """Everything wrong with the steps of ``job``, and with the channels that come from them."""
    if job.image.framework in processing():
        message = f"images of {job.image.framework} process data and train nothing"
        yield Problem(("image", "framework"), message, "give it to a step in processing, and train with another image")
    earlier: dict[str, Collection[str]] = {}
    for index, step in enumerate(job.processing):
        field: Key = ("processing", index)
        if step.name in earlier:
            yield Problem((*field, "name"), f"{step.name!r} is the name of an earlier step", "rename it")
        for found in (*problems(_as_job(job, step)), *_own(step, earlier)):
            yield replace(found, field=(*field, *found.field))
        earlier[step.name] = step.outputs
    for name, channel in job.channels.items():
        if channel.step_output is not None:
            yield from _origin(("inputs", name), channel.step_output, earlier, "a step in processing")
            if channel.s3_data_type != "S3Prefix":
                message = f"the output of a step is a folder, and {channel.s3_data_type} is asked for"
                yield Problem(("inputs", name, "s3_data_type"), message, "remove it")


def _as_job(job: Job, step: Step) -> Job:
    """``step`` in the form of a job, for the rules that hold for both."""
    own = step.resources
    resources = Resources(
        instance_type=own.instance_type,
        instance_count=own.instance_count,
        instance_quota=own.instance_count,  # the API's own limit stands in the type
        volume_size_gb=own.volume_size_gb,
        max_runtime=own.max_runtime,
    )
    inputs = {
        name: Channel(uri=source.uri, exclude=source.exclude, allow_sensitive=source.allow_sensitive)
        for name, source in step.sources.items()
        if source.uri is not None
    }
    return job.model_copy(
        update={
            "image": Image(**step.image.model_dump()),
            "code": step.code,
            "processing": [],
            "inputs": inputs,
            "hyperparameters": {},
            "environment": step.environment,
            "resources": resources,
            "metrics": [],
            "memory": None,
            "tuning": None,
            "attempts": "auto",
            "schedule": None,
            "tags": {},
        }
    )


def _own(step: Step, earlier: dict[str, Collection[str]]) -> Iterator[Problem]:
    """Rules for steps that do not apply to training jobs."""
    ml_type = step.resources.instance_type
    if ml_type in no_processing():
        message = f"SageMaker runs no processing jobs on {ml_type} (API: ProcessingInstanceType)"
        yield Problem(("resources", "instance_type"), message, "use another type, such as ml.m5.xlarge")
    yield from _inputs(step, earlier)
    yield from _outputs(step)
    disk, asked = instances()[ml_type].nvme_gb if ml_type in instances() else 0, step.resources.volume_size_gb
    if disk and asked > disk:
        message = f"{asked} GB, and {ml_type} has {disk} GB of local disks and gets no volume beside them (API)"
        yield Problem(("resources", "volume_size_gb"), message, f"write at most {disk}, or take another instance_type")
    variables, longest = most("processing.*.environment"), most("processing.*.environment.*")
    if len(step.environment) > variables:
        message = f"{len(step.environment)} entries; a processing job takes {variables}"
        yield Problem(("environment",), message, "put the rest into a file of the code")
    for key, raw in step.environment.items():
        if len(as_text(raw)) > longest or len(key) > longest:
            message = f"a processing job takes names and values of {longest} characters"
            yield Problem(("environment", key), message, "pass it as an argument, or in a file of the code")
    arguments, path = most("processing.*.code.arguments"), most("processing.*.code.entry_point")
    if step.code and len(step.code.arguments) > arguments:
        message = f"{len(step.code.arguments)} arguments; a processing job takes {arguments}"
        yield Problem(("code", "arguments"), message, "put the rest into a file of the code")
    if step.code and len(step.code.entry_point) > path:
        message = f"{len(step.code.entry_point)} characters; its path in the container may have 256"
        yield Problem(("code", "entry_point"), message, f"use a path of at most {path} characters")


def _inputs(step: Step, earlier: dict[str, Collection[str]]) -> Iterator[Problem]:
    all_of_them = most("processing.*.inputs")
    if len(step.inputs) > all_of_them - (step.code is not None):
        message = f"{len(step.inputs)} inputs; a processing job takes {all_of_them}, its code being one of them"
        yield Problem(("inputs",), message, "give several prefixes one parent, or use a manifest")
    for name, source in step.sources.items():
        field: Key = ("inputs", name)
        yield from uri_problems(field, source, "processing.*.inputs.*.uri")
        if (source.uri is None) == (source.step_output is None):
            yield Problem(field, "an input is either a uri or from an earlier step", "keep one of the two")
        elif source.step_output is not None:
            yield from _origin(field, source.step_output, earlier, "an earlier step")
            yield from not_local(field, source)
        if source.s3_data_type != "S3Prefix" and (source.is_local or source.step_output is not None):
            yield Problem(
                (*field, "s3_data_type"), "a manifest is read through an S3 uri", "remove it, or give its uri"
            )


def _outputs(step: Step) -> Iterator[Problem]:
    all_of_them = most("processing.*.outputs")
    if len(step.outputs) > all_of_them - step.image.is_spark:
        message = f"{len(step.outputs)} outputs; a processing job takes {all_of_them}, Spark's event log being one"
        yield Problem(("outputs",), message, "write several into folders of one output")
    for index, name in enumerate(step.outputs):
        field: Key = ("outputs", index)
        if not re.fullmatch(r"[A-Za-z0-9.\-_]{1,64}", name) or name in (".", ".."):
            message = f"{name!r} is no name of an output: 1 to 64 letters, digits, dots, hyphens, underscores"
            yield Problem(field, message, "rename it")
        if step.outputs.index(name) != index:
            yield Problem(field, f"{name!r} is the name of an earlier output", "rename it")
        if name == EVENTS:
            yield Problem(field, f"{EVENTS!r} is where Spark's event log goes", "rename it")


def _origin(field: Key, origin: str, known: dict[str, Collection[str]], what: str) -> Iterator[Problem]:
    step, slash, output = origin.partition("/")
    place: Key = (*field, "from")
    if not slash or step not in known:
        names = ", ".join(known) or "none"
        yield Problem(place, f"{origin!r} does not begin with the name of {what}", f"write STEP/OUTPUT; steps: {names}")
    elif output not in known[step]:
        yield Problem(place, f"{step} has no output {output!r}", f"use one of {', '.join(known[step])}")


@cache
def no_processing() -> frozenset[str]:
    """Types that train and do not process."""
    return frozenset(json.loads((TRAINING_JOB_MODULE / "processing.json").read_text(encoding="utf-8"))["no_processing"])

"""Rules between fields, and rules about the world outside the file: paths, instance types, secrets.

Each rule yields problems of the form (field, what is wrong and why, which knob to turn). The Terraform module
checks the same limits for users without Python; the messages here use the field names of the job file.
Sources: the CreateTrainingJob API reference; the SageMaker developer guide on spot training, warm pools, input modes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from sagefit.catalog import instances
from sagefit.job.addresses import S3_URI, missing_path, names_in, no_s3_uri, path_knob
from sagefit.job.environment import reserved
from sagefit.job.groups import group_problems
from sagefit.job.images import image_problems, processor_problems
from sagefit.job.instance_types import type_problems
from sagefit.job.key import Key, dotted
from sagefit.job.limit_rules import text_problems
from sagefit.job.limits import most
from sagefit.job.memory_rules import memory_problems
from sagefit.job.metrics import metric_problems
from sagefit.job.model import Attempt, Channel, Job
from sagefit.job.problem import Problem, secret
from sagefit.job.schedules import schedule_problems
from sagefit.job.script_names import models_in
from sagefit.job.secrets import looks_secret
from sagefit.job.tuning_rules import tuning_problems
from sagefit.job.upload_rules import not_local
from sagefit.job.values import Code, as_text, as_written
from sagefit.nearest import did_you_mean

_OWN_CHANNELS = {"code", "sagefit"}


def problems(job: Job) -> Iterator[Problem]:
    """Every problem of ``job`` that its types alone do not find."""
    yield from image_problems(job)
    yield from processor_problems(job, _types(job))
    yield from _code(job)
    for name, channel in job.channels.items():
        yield from _channel(job, name, channel)
    yield from _texts(job)
    yield from _resources(job)
    yield from memory_problems(job)
    yield from tuning_problems(job)
    yield from group_problems(job)
    yield from schedule_problems(job)
    yield from metric_problems(job)
    if job.attempts != "auto":
        yield from _attempts(job, job.attempts)
    elif not job.resources.instance_groups:
        yield from _choice(job)


def _code(job: Job) -> Iterator[Problem]:
    if job.code is None:
        return
    folder = job.local(job.code.source_dir)
    if not _is(folder, Path.is_dir):
        yield Problem(
            ("code", "source_dir"),
            f"the folder {job.code.source_dir!r} does not exist (looked for {folder})",
            path_knob(job, job.code.source_dir),
        )
        return
    script = (folder / job.code.entry_point).resolve()
    if not script.is_relative_to(folder) or not _is(script, Path.is_file):
        yield Problem(
            ("code", "entry_point"),
            f"no file {job.code.entry_point!r} in {job.code.source_dir!r}",
            did_you_mean(job.code.entry_point, names_in(folder), "name a script inside code.source_dir"),
        )

    if job.resources.network_isolation and _is(folder / "requirements.txt", Path.is_file):
        yield from _isolated_requirements(job.code)
    for index, argument in enumerate(job.code.arguments):
        field: Key = ("code", "arguments", index)
        name, _, value = argument.lstrip("-").partition("=")
        if looks_secret(name, value or name):
            yield secret(field)
        longest = most("code.arguments.*")
        if "\n" in argument or not 1 <= len(argument) <= longest:
            rule = f"an argument is one line of 1 to {longest} characters"
            yield Problem(field, rule, "shorten it, or use a hyperparameter")


def _isolated_requirements(code: Code) -> Iterator[Problem]:
    """An isolated container reaches no package index (CreateTrainingJob, EnableNetworkIsolation)."""
    if not code.offline_requirements and not any(fnmatch("requirements.txt", pattern) for pattern in code.exclude):
        yield Problem(
            ("resources", "network_isolation"),
            f"pip cannot install {code.source_dir}/requirements.txt, because the container has no network",
            "take an image that has the packages or put wheels in the folder, and set code.offline_requirements: true; "
            "or set network_isolation: false",
        )


def _is(path: Path, test: Callable[[Path], bool]) -> bool:
    """``test`` of ``path``; False for what no file system can hold."""
    try:
        return test(path)
    except (OSError, ValueError):
        return False


def _channel(job: Job, name: str, channel: Channel) -> Iterator[Problem]:
    field: Key = ("inputs", name)
    if not re.fullmatch(r"(?!\.{1,2}$)[A-Za-z0-9.\-_]{1,64}", name):
        yield Problem(field, "a channel name has 1 to 64 letters, digits, dots, hyphens or underscores", "rename it")
    if name in _OWN_CHANNELS:
        yield Problem(field, f"the channel name {name!r} is used by Sagefit itself", "rename it")
    if [channel.uri, channel.file_system, channel.step_output].count(None) != 2:
        yield Problem(field, "a channel is one of: a uri, a file_system, from a processing step", "keep one of them")
        return
    mode = channel.mode or job.resources.input_mode
    if channel.is_local:
        if channel.uri is not None and not (channel.uri and _is(job.local(channel.uri), Path.exists)):
            yield missing_path(job, field, channel.uri)
    elif channel.uri is not None and not re.fullmatch(S3_URI, channel.uri):
        yield no_s3_uri(field, channel.uri)
    if not channel.is_local:
        yield from not_local(field, channel)
    if channel.file_system is not None:
        if mode != "File":
            yield Problem(field, f"a file system is read in File mode, not {mode}", f"set inputs.{name}.mode to File")
        if not channel.file_system.directory_path.startswith("/"):
            yield Problem((*field, "file_system", "directory_path"), "starts with a slash", "write the absolute path")
    if channel.s3_data_type == "AugmentedManifestFile" and mode != "Pipe":
        yield Problem(
            field,
            f"an AugmentedManifestFile is read in Pipe mode only, and the mode is {mode}",
            f"set inputs.{name}.mode to Pipe",
        )
    if channel.s3_data_type != "S3Prefix" and (channel.uri is None or channel.is_local):
        yield Problem(
            (*field, "s3_data_type"),
            "a manifest is read through an S3 uri",
            f"set inputs.{name}.uri to s3://bucket/key, or remove s3_data_type",
        )
    if (channel.s3_data_type == "AugmentedManifestFile") != bool(channel.attribute_names):
        yield Problem(
            (*field, "attribute_names"),
            "an augmented manifest needs attribute_names, and nothing else takes them (API: S3DataSource)",
            "set both or neither",
        )
    if mode == "FastFile" and channel.s3_data_type != "S3Prefix":
        message = f"FastFile mode reads an S3Prefix only, and s3_data_type is {channel.s3_data_type}"
        yield Problem(field, message, f"set inputs.{name}.mode to File or Pipe")
    if mode == "FastFile" and channel.uri and not channel.is_local and not channel.uri.endswith("/"):
        yield Problem((*field, "uri"), "FastFile mode needs a prefix that ends with a slash", "add the slash")
    if mode != "Pipe" and "Gzip" in (channel.compression or ""):
        message = f"Gzip is undone in Pipe mode only, and the mode is {mode}"
        yield Problem((*field, "compression"), message, f"set inputs.{name}.mode to Pipe, or remove it")
    if mode != "Pipe" and channel.record_wrapper == "RecordIO":
        yield Problem(field, "RecordIO wrapping exists in Pipe mode only", f"set inputs.{name}.mode to Pipe")


def _texts(job: Job) -> Iterator[Problem]:
    places = [((), job)] + [
        (("attempts", i), attempt) for i, attempt in enumerate(job.attempts) if isinstance(attempt, Attempt)
    ]
    for prefix, place in places:
        for key, raw in place.hyperparameters.items():
            field: Key = (*prefix, "hyperparameters", key)
            yield from _text(field, "hyperparameters", key, raw)
            if isinstance(raw, str) and "\n" in raw:
                yield Problem(field, "SageMaker takes one line", "put the text into a file of the code")
        for key, raw in place.environment.items():
            field = (*prefix, "environment", key)
            yield from _text(field, "environment", key, raw)
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
                yield Problem(field, "a variable name has letters, digits and underscores only", "rename it")
            if why := reserved(key):
                by_role = "; the job's execution role says what it may do" if "rights" in why else ""
                knob = f"rename it, or remove it{by_role}"
                yield Problem(field, f"no job sets this variable: {why}", knob)
    for key, value in job.tags.items():
        yield from _text(("tags", key), "tags", key, value)
    for what, table in (("hyperparameters", job.hyperparameters), ("environment", job.environment), ("tags", job.tags)):
        yield from _twins((what,), table)


def _twins(field: Key, table: Mapping[str, object]) -> Iterator[Problem]:
    """Terraform keeps text in Unicode's form NFC, where two keys can become one and a value would be lost."""
    seen: dict[str, str] = {}
    for key in table:
        first = seen.setdefault(unicodedata.normalize("NFC", key), key)
        if first != key:
            yield Problem((*field, key), f"is the same text as {first!r} in another Unicode form", "remove one of them")


def _text(field: Key, what: str, key: str, raw: object) -> Iterator[Problem]:
    try:
        value = as_text(raw)  # type: ignore[arg-type]
    except ValueError:
        yield Problem(field, f"{raw!r} cannot be passed to a training job", "use a finite number or text")
        return
    yield from text_problems(field, what, key, value)
    if looks_secret(key, value):
        yield secret(field)


def _resources(job: Job) -> Iterator[Problem]:
    resources = job.resources
    if isinstance(resources.instance_type, list):
        for index, ml_type in enumerate(resources.instance_type):
            yield from type_problems(("resources", "instance_type", index), ml_type)
    elif resources.instance_type != "auto":
        yield from type_problems(("resources", "instance_type"), resources.instance_type)
    yield from _instance_count(job, ("resources", "instance_count"), resources.instance_count)
    alone = job.attempts == "auto"
    any_spot = resources.spot or (job.attempts != "auto" and any(attempt.spot for attempt in job.attempts))
    yield from _spot(
        ("resources",),
        spot=any_spot,
        runtime=resources.max_runtime,
        wait=resources.max_wait,
        names=("max_runtime", "max_wait"),
        needs_wait=resources.spot and alone,
    )
    yield from _spot_extras(("resources", "spot"), job, spot=resources.spot)
    if isinstance(resources.warm_pool, int) and resources.warm_pool > resources.max_keep_alive:
        yield Problem(
            ("resources", "warm_pool"),
            *_too_warm(resources.warm_pool, resources.max_keep_alive),
        )
    place, longest = resources.checkpoint_local_path, most("resources.checkpoint_local_path")
    if len(place) > longest or not re.fullmatch(r"(?:/(?!\.{1,2}(?:/|$))[^/]+)+", place):
        yield Problem(
            ("resources", "checkpoint_local_path"),
            f"an absolute path below / of at most {longest} characters, without . and .. and double slashes",
            "write it out, such as /opt/ml/checkpoints",
        )
    if (resources.subnet_ids is None) != (resources.security_group_ids is None):
        given, other = ("subnet_ids", "security_group_ids")[:: 1 if resources.subnet_ids else -1]
        message = "subnets and security groups go together, and only one of them is given"
        yield Problem(("resources", given), message, f"add resources.{other}, or remove both")
    if resources.remote_debug and resources.network_isolation:
        yield Problem(
            ("resources", "remote_debug"),
            "remote_debug needs the network, and network_isolation removes it",
            "turn one of them off",
        )
    if resources.volume_kms_key_arn is not None:
        for field, ml_type in _types(job):
            known = instances().get(ml_type)
            if known and known.nvme_gb:
                yield Problem(
                    field,
                    f"{ml_type} trains on local NVMe storage, which takes no volume key",
                    "remove resources.volume_kms_key_arn or use a type without local storage",
                )


def _choice(job: Job) -> Iterator[Problem]:
    """With ``attempts: auto`` Sagefit makes the choices that the file leaves open; so it must know what is trained."""
    written = job.resources.instance_type
    known = job.memory is not None and (job.memory.model is not None or job.memory.trace is not None)
    if not known and (written == "auto" or (isinstance(written, list) and len(written) > 1)):
        choice = "auto" if written == "auto" else "a choice of types"
        told = next(models_in(job.hyperparameters), None)
        model = f"memory: {{ model: {told[1][:80]} }} (hyperparameters.{told[0]} says it)" if told else "memory.model"
        yield Problem(
            ("resources", "instance_type"),
            f"{choice} needs memory.model, and the file has none",
            f"add {model} or memory.trace, or give resources.instance_type one type, or write the attempts out",
        )


def _attempts(job: Job, attempts: list[Attempt]) -> Iterator[Problem]:
    names = [attempt.name for attempt in attempts]
    default = job.resources.instance_type
    for index, attempt in enumerate(attempts):
        field: Key = ("attempts", index)
        if names.index(attempt.name) != index:
            yield Problem((*field, "name"), f"{attempt.name!r} is already the name of an earlier attempt", "rename it")
        if attempt.instance_type is not None:
            yield from type_problems((*field, "instance_type"), attempt.instance_type)
        elif not job.resources.instance_groups and (not isinstance(default, str) or default == "auto"):
            yield Problem(field, "no instance type", "add instance_type here or one type in resources.instance_type")
        yield from _instance_count(job, (*field, "instance_count"), attempt.instance_count or 1)
        for kind, target in attempt.next.items():
            edge: Key = (*field, "next", kind)
            if kind == "stopped":
                yield Problem(edge, "a run that a person stops ends as stopped", "remove this entry")
            elif target not in names:
                yield Problem(edge, f"no attempt is named {target!r}", f"use one of {', '.join(names)}")
            elif names.index(target) <= index:
                yield Problem(
                    edge,
                    f"{target!r} is not a later attempt, so a run might never end",
                    "point to an attempt further down the list",
                )
        spot = job.resources.spot if attempt.spot is None else attempt.spot
        # A wait and a runtime that both stand in resources were judged there.
        own = attempt.max_wait is not None or attempt.max_runtime is not None
        if own or not (spot and job.resources.max_wait):
            yield from _spot(
                field,
                spot=spot,
                runtime=attempt.max_runtime or job.resources.max_runtime,
                wait=attempt.max_wait or (job.resources.max_wait if spot else None),
                names=("max_runtime", "max_wait"),
                needs_wait=spot,
            )
        if attempt.spot:
            yield from _spot_extras((*field, "spot"), job, spot=True)
        if attempt.warm_pool and spot:
            yield Problem(
                (*field, "warm_pool"),
                "SageMaker keeps no warm pool for managed spot training",
                "set spot: false or remove warm_pool",
            )
        if attempt.warm_pool and attempt.warm_pool > job.resources.max_keep_alive:
            yield Problem(
                (*field, "warm_pool"),
                *_too_warm(attempt.warm_pool, job.resources.max_keep_alive),
            )


def _too_warm(seconds: int, quota: int) -> tuple[str, str]:
    return (
        f"keeps the instance {as_written(seconds)}, and the quota that Sagefit counts with, resources.max_keep_alive, "
        f"is {as_written(quota)} (SageMaker's default quota: 1h)",
        "shorten it, or raise resources.max_keep_alive (at most 6h) when your quota allows",
    )


def _types(job: Job) -> Iterator[tuple[Key, str]]:
    for index, group in enumerate(job.resources.instance_groups):
        yield ("resources", "instance_groups", index, "instance_type"), group.instance_type
    own = job.resources.instance_type
    for ml_type in own if isinstance(own, list) else [own]:
        yield ("resources", "instance_type"), ml_type
    if job.attempts != "auto":
        for index, attempt in enumerate(job.attempts):
            if attempt.instance_type:
                yield ("attempts", index, "instance_type"), attempt.instance_type


def _instance_count(job: Job, field: Key, count: int) -> Iterator[Problem]:
    """20 instances of a training job is the default quota (SageMaker's endpoints and quotas)."""
    if count > job.resources.instance_quota:
        yield Problem(
            field,
            f"{count} instances; the quota of a training job is {job.resources.instance_quota}",
            "ask for fewer, of a larger type, or raise resources.instance_quota when your account has more",
        )


def _spot(
    field: Key, *, spot: bool, runtime: int, wait: int | None, names: tuple[str, str], needs_wait: bool
) -> Iterator[Problem]:
    runtime_name, wait_name = names
    if wait is not None and not spot:
        yield Problem(
            (*field, wait_name), "SageMaker waits for spot capacity only", f"remove {wait_name} or set spot: true"
        )
    elif spot and wait is not None and wait < runtime:
        yield Problem(
            (*field, wait_name),
            f"{as_written(wait)} is less than {runtime_name}, {as_written(runtime)}; waiting includes running",
            f"raise {wait_name} to {as_written(runtime)} or more, or lower {runtime_name}",
        )
    elif needs_wait and wait is None:
        yield Problem(
            (*field, "spot"),
            f"managed spot training needs {wait_name}",
            f"add {dotted((*field, wait_name))}: {as_written(runtime)} or more, which is {runtime_name}",
        )


def _spot_extras(field: Key, job: Job, *, spot: bool) -> Iterator[Problem]:
    if spot and not job.resources.checkpoints:
        yield Problem(
            field,
            "a spot job without checkpoints starts from nothing after every interruption",
            "set resources.checkpoints: true, or spot: false",
        )
    pool = job.resources.warm_pool
    if spot and pool and not (isinstance(pool, str) and field[0] == "attempts"):  # a later one may miss the pool
        yield Problem(
            field,
            "SageMaker keeps no warm pool for managed spot training",
            "set spot: false or remove resources.warm_pool",
        )

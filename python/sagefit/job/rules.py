"""Rules between fields, and rules about the world outside the file: paths, instance types, secrets.

Each rule yields problems of the form (field, what is wrong and why, which knob to turn). The Terraform module
checks the same limits for those who use it without Python; here they come with the job file's own field names.
Sources: the CreateTrainingJob API reference; the SageMaker developer guide on spot training, warm pools, input modes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from sagefit.catalog import instances, suggest
from sagefit.job.environment import reserved
from sagefit.job.groups import group_problems
from sagefit.job.images import image_problems, processor_problems
from sagefit.job.limit_rules import text_problems
from sagefit.job.limits import most
from sagefit.job.memory_rules import memory_problems
from sagefit.job.model import Attempt, Channel, Job, Schedule
from sagefit.job.problem import Problem
from sagefit.job.secrets import looks_secret, secret
from sagefit.job.source import Key
from sagefit.job.tuning_rules import tuning_problems
from sagefit.job.upload_rules import not_local
from sagefit.job.values import Code, as_text, duration

_OWN_CHANNELS = {"code", "sagefit"}


def problems(job: Job) -> Iterator[Problem]:
    """Everything wrong with ``job`` that its types alone do not show."""
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
            "paths are relative to the job file",
        )
        return
    script = (folder / job.code.entry_point).resolve()
    if not script.is_relative_to(folder) or not _is(script, Path.is_file):
        yield Problem(
            ("code", "entry_point"),
            f"no file {job.code.entry_point!r} in {job.code.source_dir!r}",
            "name a script inside code.source_dir",
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
            yield Problem(
                field,
                f"the local path {channel.uri!r} does not exist (looked for {job.local(channel.uri)})",
                "paths are relative to the job file; data in S3 starts with s3://",
            )
    elif channel.uri is not None and not re.fullmatch(r"s3://[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9](/.*)?", channel.uri):
        yield Problem(field, f"{channel.uri!r} is no S3 uri", "write s3://bucket/prefix/ or a local path")
    if not channel.is_local:
        yield from not_local(field, channel)
    if channel.file_system is not None:
        if mode != "File":
            yield Problem(field, f"a file system is read in File mode, not {mode}", f"set inputs.{name}.mode to File")
        if not channel.file_system.directory_path.startswith("/"):
            yield Problem((*field, "file_system", "directory_path"), "starts with a slash", "write the absolute path")
    if channel.s3_data_type == "AugmentedManifestFile" and mode != "Pipe":
        yield Problem(field, "an augmented manifest is read in Pipe mode only", f"set inputs.{name}.mode to Pipe")
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
        yield Problem(field, "FastFile mode reads an S3Prefix only", f"set inputs.{name}.mode to File")
    if mode == "FastFile" and channel.uri and not channel.is_local and not channel.uri.endswith("/"):
        yield Problem((*field, "uri"), "FastFile mode needs a prefix that ends with a slash", "add the slash")
    if mode != "Pipe" and "Gzip" in (channel.compression or ""):
        yield Problem(field, "compression is undone in Pipe mode only", f"set inputs.{name}.mode to Pipe")
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
                yield Problem(field, f"no job sets this variable: {why}", "rename it, or remove it")
    for key, value in job.tags.items():
        yield from _text(("tags", key), "tags", key, value)
    for what, table in (("hyperparameters", job.hyperparameters), ("environment", job.environment), ("tags", job.tags)):
        yield from _twins((what,), table)
        if len(table) > (limit := most(what)):
            yield Problem(
                (what,), f"{len(table)} entries; SageMaker and Sagefit together leave room for {limit}", "remove some"
            )


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
            yield from _instance_type(("resources", "instance_type", index), ml_type)
    elif resources.instance_type != "auto":
        yield from _instance_type(("resources", "instance_type"), resources.instance_type)
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
            f"keeps the instance {duration(resources.warm_pool)}; the default quota of SageMaker is 1 h",
            "shorten it, or raise resources.max_keep_alive (at most 6h) when your quota allows",
        )
    place, longest = resources.checkpoint_local_path, most("resources.checkpoint_local_path")
    if not re.fullmatch(r"(?:/(?!\.{1,2}(?:/|$))[^/]+)+", place):
        yield Problem(
            ("resources", "checkpoint_local_path"),
            f"an absolute path of at most {longest} characters, without . and .. and double slashes",
            "write it out, such as /opt/ml/checkpoints",
        )
    schedule = job.schedule.expression if isinstance(job.schedule, Schedule) else job.schedule
    if schedule is not None and not re.fullmatch(r"(rate|cron|at)\(.+\)", schedule):
        yield Problem(
            ("schedule",), f"{schedule!r} is not rate(...), cron(...) or at(...)", "write for example rate(1 day)"
        )
    if (resources.subnet_ids is None) != (resources.security_group_ids is None):
        yield Problem(("resources", "subnet_ids"), "subnets and security groups go together", "give both or none")
    if resources.remote_debug and resources.network_isolation:
        yield Problem(
            ("resources", "remote_debug"),
            "remote debugging opens a way in that isolation closes",
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
    """With ``attempts: auto`` Sagefit makes the choices that the file leaves open; it needs something to go by."""
    written = job.resources.instance_type
    known = job.memory is not None and (job.memory.model is not None or job.memory.trace is not None)
    if not known and (written == "auto" or (isinstance(written, list) and len(written) > 1)):
        yield Problem(
            ("resources", "instance_type"),
            "to choose an instance, Sagefit has to know what is trained, and memory.model does not say it",
            "add memory.model or memory.trace, or give resources.instance_type one type, or write the attempts out",
        )


def _attempts(job: Job, attempts: list[Attempt]) -> Iterator[Problem]:
    names = [attempt.name for attempt in attempts]
    default = job.resources.instance_type
    for index, attempt in enumerate(attempts):
        field: Key = ("attempts", index)
        if names.index(attempt.name) != index:
            yield Problem((*field, "name"), f"{attempt.name!r} is the name of an earlier attempt", "rename it")
        if attempt.instance_type is not None:
            yield from _instance_type((*field, "instance_type"), attempt.instance_type)
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
        own = attempt.max_wait_seconds is not None or attempt.max_runtime_seconds is not None
        if own or not (spot and job.resources.max_wait):
            yield from _spot(
                field,
                spot=spot,
                runtime=attempt.max_runtime_seconds or job.resources.max_runtime,
                wait=attempt.max_wait_seconds or (job.resources.max_wait if spot else None),
                names=("max_runtime_seconds", "max_wait_seconds"),
                needs_wait=spot,
            )
        if attempt.spot:
            yield from _spot_extras((*field, "spot"), job, spot=True)
        if attempt.keep_alive_seconds and spot:
            yield Problem(
                (*field, "keep_alive_seconds"),
                "SageMaker keeps no warm pool for managed spot training",
                "set spot: false or remove keep_alive_seconds",
            )
        if attempt.keep_alive_seconds and attempt.keep_alive_seconds > job.resources.max_keep_alive:
            yield Problem(
                (*field, "keep_alive_seconds"),
                f"keeps the instance {duration(attempt.keep_alive_seconds)}; the default quota of SageMaker is 1 h",
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


def _instance_type(field: Key, ml_type: str) -> Iterator[Problem]:
    if ml_type not in instances():
        near = suggest(ml_type)
        yield Problem(
            field,
            f"{ml_type!r} is no instance type that SageMaker trains on",
            f"did you mean {near}?" if near else "see modules/training-job/instances.csv",
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
            f"{duration(wait)} is less than {runtime_name}, {duration(runtime)}; waiting includes running",
            f"raise {wait_name} or lower {runtime_name}",
        )
    elif needs_wait and wait is None:
        yield Problem(
            (*field, "spot"), f"managed spot training needs {wait_name}", f"add {wait_name}, at least {runtime_name}"
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

"""Values in a job file that are valid but rarely intended: shown with the sizing and every plan, never refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sagefit.job.entry_point import script_of
from sagefit.job.key import Key
from sagefit.job.metrics import has_no_group
from sagefit.job.model import Job
from sagefit.job.names import plain
from sagefit.job.problem import Problem
from sagefit.job.values import as_text

_WORDS = ("true", "false")
_SHORT = 60
"""Seconds: a training that is worth the start of an instance takes at least this long."""
_ECR = r"\d{12}\.dkr\.ecr\.|public\.ecr\.aws/"


def remarks(job: Job) -> Iterator[Problem]:
    """Each remark with its field, the effect of the value as written, and what the user may have meant."""
    yield from _image(job)
    yield from _addresses(job)
    yield from _durations(job)
    yield from _values(job)
    yield from _network(job)
    yield from _schedule(job)
    if job.tuning and job.tuning.strategy == "Grid" and job.tuning.max_jobs:
        message = f"Grid tries every combination, {job.tuning.combinations}, and max_jobs says nothing"
        yield Problem(("tuning", "max_jobs"), message, "remove it, or shorten the lists of tuning.ranges")
    for index, metric in enumerate(job.metrics):
        if has_no_group(metric.regex):
            message = f"'{metric.regex}' has no group, and a metric's value is what its first group matches"
            yield Problem(("metrics", index, "regex"), message, "put the number in parentheses: ([0-9.]+)")


def _image(job: Job) -> Iterator[Problem]:
    uri = job.image.uri
    if uri and not re.match(_ECR, uri) and ".dkr.ecr" not in uri:
        message = f"'{uri}' is not in Amazon ECR, and SageMaker pulls from there, or from a registry in the job's VPC"
        yield Problem(("image", "uri"), message, "copy it to the platform's repository, and give image.repository")


def _addresses(job: Job) -> Iterator[Problem]:
    for name, channel in job.channels.items():
        uri, field = channel.uri or "", ("inputs", name)
        if channel.is_local or not uri:
            continue
        if "*" in uri or "?" in uri:
            message = f"'{uri}' is taken as it is written: SageMaker reads a prefix, and no pattern"
            yield Problem(field, message, "give the prefix before it, or a manifest (s3_data_type: ManifestFile)")
        if "//" in uri.removeprefix("s3://"):
            right = "s3://" + re.sub(r"/{2,}", "/", uri.removeprefix("s3://"))
            yield Problem(field, f"'{uri}' has two slashes, which are part of the key's name", f"did you mean {right}?")


def _network(job: Job) -> Iterator[Problem]:
    for name, start, other in (("subnet_ids", "subnet-", "sg-"), ("security_group_ids", "sg-", "subnet-")):
        for index, written in enumerate(getattr(job.resources, name) or []):
            if written.startswith(other):
                message = f"'{written}' is no id of that kind, which begins with {start}"
                yield Problem(("resources", name, index), message, "are subnet_ids and security_group_ids swapped?")


def _schedule(job: Job) -> Iterator[Problem]:
    """A rate has its first time as soon as the schedule is made (EventBridge Scheduler guide, Rate-based schedules)."""
    written = job.schedule if isinstance(job.schedule, str) or job.schedule is None else job.schedule.expression
    if written and written.startswith("rate("):
        field: Key = ("schedule",) if isinstance(job.schedule, str) else ("schedule", "expression")
        message = f"'{written}' starts a first run as soon as the schedule is made, not after the first interval"
        yield Problem(field, message, "write cron(...) or at(...) where the hour matters", alone=True)


def _durations(job: Job) -> Iterator[Problem]:
    places: list[tuple[Key, int | None]] = [(("resources", "max_runtime"), job.resources.max_runtime)]
    for index, attempt in enumerate(job.attempts if isinstance(job.attempts, list) else []):
        places.append((("attempts", index, "max_runtime"), attempt.max_runtime))
    for field, seconds in places:
        written = job.written(field)
        if seconds is not None and seconds < _SHORT and written and written.isdecimal():
            message = f"{seconds} is {seconds} s: a plain number is in seconds"
            yield Problem(field, message, f"did you mean {seconds}h or {seconds}m?")


def _values(job: Job) -> Iterator[Problem]:
    switches = script_of(job).switches
    places: list[tuple[Key, Job]] = [((), job)]
    places += [(("attempts", i), each) for i, each in enumerate(job.attempts if isinstance(job.attempts, list) else [])]  # type: ignore[misc]
    for prefix, place in places:
        for what in ("hyperparameters", "environment"):
            for name, value in getattr(place, what).items():
                if what == "hyperparameters" and plain(name) in switches:
                    line, script = switches[plain(name)], job.code.entry_point if job.code else ""
                    message = (
                        f"is passed as --{name} {as_text(value)}, and {script} (line {line}) takes it without a value"
                    )
                    knob = f"put it into code.arguments: [--{name}], or leave it out"
                    yield Problem((*prefix, what, name), message, knob)
                yield from _value((*prefix, what, name), name, value, job.written((*prefix, what, name)))


def _value(field: Key, name: str, value: object, written: str | None) -> Iterator[Problem]:
    """A value that YAML, or the way to the script, changes."""
    passed = as_text(value)  # type: ignore[arg-type]
    if isinstance(value, bool) and written and written.casefold() not in _WORDS:
        message = f"YAML reads {written} as {passed}, and the script gets '{passed}'"
        yield Problem(field, message, f'put it in quotes if it is a word: "{written}"')
    elif isinstance(value, int) and not isinstance(value, bool) and written and re.match(r"[-+]?0[0-7_]+$", written):
        message = f"YAML reads {written} as a number in base 8 (octal), and the script gets '{passed}'"
        yield Problem(field, message, f'put it in quotes if the zero counts: "{written}"')
    elif field[-2] == "environment" and isinstance(value, float) and written and written != passed:
        message = f"YAML reads {written} as a number, and the variable is '{passed}'"
        yield Problem(field, message, f'put it in quotes: "{written}"')
    elif isinstance(value, list) and field[-2] == "hyperparameters":
        message = f"is a list, and the script gets it as one text in JSON: {passed[:60]}"
        several = " ".join(as_text(each) for each in value)[:60]
        yield Problem(field, message, f"if it takes several words, write code.arguments: [--{name}, {several}]")
    elif isinstance(value, dict):
        message = f"is a mapping, and the script gets it as one text in JSON: {passed[:60]}"
        yield Problem(
            field, message, "write each entry as a hyperparameter of its own, if the script does not read JSON"
        )
    if field[-2] == "hyperparameters" and name.startswith("-"):
        message = f"the script gets --{name}: two dashes stand before every name"
        yield Problem(field, message, f"did you mean {name.lstrip('-')}?")

"""Limits that need more than one field; the type of a field checks its own limits (`sagefit.job.limits`).

They apply to the job, not to its processing steps: those have their own launcher, metrics and tags, or none.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sagefit.job.image_table import algorithms, is_algorithm, writes_checkpoints
from sagefit.job.key import Key
from sagefit.job.left_out import LeftOut, always_left_out
from sagefit.job.limits import limits, most
from sagefit.job.problem import Problem
from sagefit.job.values import duration

if TYPE_CHECKING:
    from sagefit.job.model import Image, Job
    from sagefit.job.values import Source

CODE_CHANNELS = 2
"""Inputs that Sagefit adds to a job with code: the code and the launcher."""
LAUNCHER_ARGUMENTS = 4
"""What the launcher is told before the script's own arguments, and one more in an isolated container."""
LAUNCHER_METRICS = 4
LONGEST_SPOT_WAIT = 3600
"""Of a built-in algorithm without checkpoints (SageMaker guide, managed spot training)."""
_OWN_TAGS = {"sagefit:": "the platform's and Sagefit's own", "aws:": "reserved (API)"}


def limit_problems(job: Job) -> Iterator[Problem]:
    """Every limit that a job exceeds."""
    yield from _name(job)
    yield from _counts(job)
    yield from _inputs(job)
    yield from _code(job)
    yield from _metrics(job)
    yield from _tags(job)
    yield from _spot(job)
    if job.resources.output_s3_uri and job.resources.output_kms_key_arn:
        yield from express_problems(job)


def _name(job: Job) -> Iterator[Problem]:
    """A name with which the role of the job's state machine has the name of another role.

    The state machine's role is named ``sagefit-PLATFORM-JOB``, the role of the containers and the one of the schedule
    have ``-execution`` and ``-schedule`` after that. A path does not tell two roles apart (IAM: CreateRole, RoleName).
    """
    reserved = limits()["name"].reserved or ""
    if re.fullmatch(reserved, job.name):
        ending = job.name.rpartition("-")[2]
        owner = "the platform" if job.name == ending else f"a job {job.name.removesuffix(f'-{ending}')!r}"
        yield Problem(
            ("name",),
            f"{job.name!r} may be the role of {owner}, and an account has each name of a role only once (IAM)",
            f"rename it, such as {job.name.removesuffix(ending) + 'job'!r}",
        )


def express_problems(job: Job) -> Iterator[Problem]:
    """An output in a directory bucket, of a job whose output has a key."""
    uri = job.resources.output_s3_uri or ""
    if uri.removeprefix("s3://").split("/")[0].endswith("--x-s3"):
        yield Problem(
            ("resources", "output_s3_uri"),
            "an S3 Express One Zone bucket takes no KMS key (API)",
            "use a general purpose bucket, or leave the key out",
        )


def arguments_left(*, isolated: bool) -> int:
    """How many arguments a script may have beside those of the launcher."""
    return most("code.arguments") - LAUNCHER_ARGUMENTS - isolated


def argument_problems(job: Job, *, isolated: bool) -> Iterator[Problem]:
    """More arguments than a container takes."""
    given, left = len(job.code.arguments) if job.code else 0, arguments_left(isolated=isolated)
    if given > left:
        yield Problem(
            ("code", "arguments"),
            f"{given} arguments; a container takes {most('code.arguments')} (API), which leaves {left} beside those of "
            "the launcher",
            "pass the rest as hyperparameters, or in a file of the code",
        )


def _counts(job: Job) -> Iterator[Problem]:
    for what, table in (("hyperparameters", job.hyperparameters), ("environment", job.environment), ("tags", job.tags)):
        if len(table) > (limit := most(what)):
            message = f"{len(table)} entries; SageMaker and Sagefit together leave room for {limit}"
            yield Problem((what,), message, "remove some")


def uri_problems(field: Key, source: Source, limit: str) -> Iterator[Problem]:
    """An address in S3 that is longer than the row ``limit`` of the table says."""
    if source.uri and not source.is_local and len(source.uri) > (longest := most(limit)):
        yield Problem((*field, "uri"), f"an S3 uri has at most {longest} characters (API)", "use a shorter prefix")


def _inputs(job: Job) -> Iterator[Problem]:
    own = CODE_CHANNELS if job.code else 0
    if len(job.inputs) + own > most("inputs"):
        yield Problem(
            ("inputs",),
            f"{len(job.inputs)} inputs; a training job takes {most('inputs')} (API), and a job with code uses {own}",
            "give several prefixes one parent, or use a manifest",
        )
    for name, channel in job.channels.items():
        yield from uri_problems(("inputs", name), channel, "inputs.*.uri")


def _code(job: Job) -> Iterator[Problem]:
    if job.code is None:
        return
    yield from argument_problems(job, isolated=bool(job.resources.network_isolation))
    if len(job.code.entry_point) > (longest := most("code.entry_point")):
        message = f"{len(job.code.entry_point)} characters; a container takes {longest} (API)"
        yield Problem(("code", "entry_point"), message, "put the script into a folder with a shorter path")
    if LeftOut([*job.code.exclude, *always_left_out(job.name)]).file(job.code.entry_point):
        yield Problem(
            ("code", "entry_point"),
            f"{job.code.entry_point} is left out of the upload, by code.exclude or because no code needs it",
            "loosen code.exclude, or name another script",
        )


def brings_metrics(image: Image) -> bool:
    """Whether SageMaker defines the metrics of an image itself, and so refuses definitions of others."""
    return image.algorithm is not None or image.framework in algorithms() or is_algorithm(image.uri or "")


def launcher_metrics(job: Job) -> int:
    """How many metrics the launcher adds to those of ``job``."""
    return LAUNCHER_METRICS if job.code and not brings_metrics(job.image) else 0


def _metrics(job: Job) -> Iterator[Problem]:
    own = launcher_metrics(job)
    if len(job.metrics) + own > most("metrics"):
        yield Problem(
            ("metrics",),
            f"{len(job.metrics)} metrics; a training job takes {most('metrics')} (API), and the launcher has {own}",
            "remove some",
        )
    count = Counter(metric.name for metric in job.metrics)
    for index, metric in enumerate(job.metrics):
        if count[metric.name] > 1 and [m.name for m in job.metrics].index(metric.name) != index:
            yield Problem(
                ("metrics", index, "name"), f"{metric.name!r} is already the name of an earlier metric", "rename it"
            )
    if job.metrics and brings_metrics(job.image):
        rule = "SageMaker's own algorithms define their own metrics"
        if job.code:
            rule += ", and XGBoost's image does so also where it runs a script"
        yield Problem(("metrics",), rule, "remove them, or use another image")


def _tags(job: Job) -> Iterator[Problem]:
    for key, value in job.tags.items():
        for what, text in (("tags.*", key), ("tags.*.value", value)):
            if not all(_may_be_in_a_tag(letter) for letter in text):
                yield Problem(("tags", key), f"a tag has {limits()[what].words} only (API)", "rename it")
                break
        for prefix, whose in _OWN_TAGS.items():
            if key.lower().startswith(prefix):
                yield Problem(("tags", key), f"keys that start with {prefix} are {whose}", "rename it")


def _may_be_in_a_tag(letter: str) -> bool:
    return letter in "_.:/=+-@" or unicodedata.category(letter)[0] in "LNZ"


def _spot(job: Job) -> Iterator[Problem]:
    name = job.image.algorithm
    if name is None or name not in algorithms() or name in writes_checkpoints():
        return
    places: list[tuple[Key, int | None]] = [(("resources", "max_wait"), job.resources.max_wait)]
    for index, attempt in enumerate([] if job.attempts == "auto" else job.attempts):
        places.append((("attempts", index, "max_wait"), attempt.max_wait))
    for field, wait in places:
        if wait and wait > LONGEST_SPOT_WAIT:
            yield Problem(
                field,
                f"{name} writes no checkpoints, and such an algorithm waits {duration(LONGEST_SPOT_WAIT)} at most for "
                "spot (SageMaker guide)",
                "lower it, or set spot: false",
            )


def text_problems(field: Key, what: str, key: str, value: str) -> Iterator[Problem]:
    """The name and the value of an entry of ``hyperparameters``, ``environment`` or ``tags`` that are too long."""
    longest_key, longest = most(f"{what}.*"), most(f"{what}.*.value")
    if not 1 <= len(key) <= longest_key:
        yield Problem(field, f"a name has 1 to {longest_key} characters", "shorten it")
    if len(value) > longest:
        yield Problem(
            field, f"{len(value)} characters; SageMaker takes {longest}", "put it into a file of the code or data"
        )
    if what == "hyperparameters" and key.endswith(".$"):
        yield Problem(field, 'a state machine reads a name that ends in ".$" as a path', "rename it")

"""Rules of the ``tuning`` block: between its own fields, and with the rest of the job file.

Sources: CreateHyperParameterTuningJob (API); "Resource limits for automatic model tuning" and "Define hyperparameter
ranges" of the SageMaker developer guide (DG).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sagefit.job.key import Key
from sagefit.job.limit_rules import brings_metrics, launcher_metrics
from sagefit.job.limits import most
from sagefit.job.problem import Problem, secret
from sagefit.job.secrets import looks_secret
from sagefit.job.tuning import Range, Tuning
from sagefit.job.values import as_text

if TYPE_CHECKING:
    from sagefit.job.model import Job

MOST_NAME = 32
EPOCHS = ("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs")
"""The hyperparameters that tell Hyperband the most that a training job may use (API, HyperbandStrategyConfig)."""


def own_hyperparameters(job: Job) -> int:
    """How many hyperparameters a trial has in addition to the job's: the objective, and those for the launcher."""
    return 4 if job.code else 1


def tuning_problems(job: Job) -> Iterator[Problem]:
    """Everything wrong with a job that tunes."""
    tuning = job.tuning
    if tuning is None:
        return
    yield from _count(tuning)
    for name in tuning.ranges:
        yield from _range(tuning, name)
    yield from _fixed(job, tuning)
    yield from _objective(job, tuning)
    yield from _strategy(job, tuning)
    yield from _names(job)
    yield from _not_with(job)


def _count(tuning: Tuning) -> Iterator[Problem]:
    if tuning.max_jobs is None and tuning.strategy != "Grid":
        yield Problem(("tuning", "max_jobs"), "is missing: how many training jobs may the search take?", "add it")
        return
    usual = most("tuning.trials")
    if tuning.jobs > usual and tuning.strategy != "Random":
        what = "is" if tuning.max_jobs else "combinations make"
        yield Problem(
            ("tuning", "max_jobs") if tuning.max_jobs else ("tuning", "ranges"),
            f"{what} {tuning.jobs} training jobs; a tuning job takes {usual} (DG)",
            "search less, or use strategy Random, which may have 10000 on request",
        )
    if tuning.strategy != "Grid" and tuning.combinations is not None and tuning.jobs > tuning.combinations:
        yield Problem(
            ("tuning", "max_jobs"),
            f"is {tuning.jobs}; the ranges have {tuning.combinations} combinations, and none is tried twice (API)",
            "lower it, or search more values",
        )
    if tuning.max_parallel_jobs > tuning.jobs:
        yield Problem(
            ("tuning", "max_parallel_jobs"),
            f"{tuning.max_parallel_jobs} at a time, of {tuning.jobs} training jobs in all",
            "lower it, or raise tuning.max_jobs",
        )
    if tuning.max_parallel_jobs > tuning.parallel_quota:
        yield Problem(
            ("tuning", "max_parallel_jobs"),
            f"{tuning.max_parallel_jobs} at a time; the quota of a tuning job is {tuning.parallel_quota} (DG)",
            "lower it, or raise tuning.parallel_quota (at most 100) when your account has more",
        )


def _range(tuning: Tuning, name: str) -> Iterator[Problem]:
    field: Key = ("tuning", "ranges", name)
    found = tuning.ranges[name]
    longest, count, letters = (most(f"tuning.ranges.{part}") for part in ("*", "*.values", "*.values.*"))
    if not 1 <= len(name) <= longest:
        yield Problem(field, f"a hyperparameter's name has 1 to {longest} characters (API)", "rename it")
    if not isinstance(found, Range):
        texts = [as_text(value) for value in found]
        if not 1 <= len(texts) <= count:
            yield Problem(field, f"{len(texts)} values; a list has 1 to {count} (API)", "change the list")
        if any(not 1 <= len(text) <= letters for text in texts):
            yield Problem(field, f"a value has 1 to {letters} characters (API)", "shorten it")
        if len(set(texts)) != len(texts):
            yield Problem(field, "the list has the same value twice", "remove one of them")
        if any(looks_secret(name, text) for text in texts):
            yield secret(field)
        return
    if found.min >= found.max:
        yield Problem(field, f"min {found.min} is not below max {found.max}", "swap them, or set a hyperparameter")
    if found.scaling == "Logarithmic" and found.min <= 0:
        yield Problem(field, "Logarithmic scaling takes numbers above 0 only (API)", "raise min, or use Linear")
    if found.scaling == "ReverseLogarithmic" and not (found.min >= 0 and found.max < 1):
        yield Problem(
            field,
            "ReverseLogarithmic scaling takes numbers from 0 to below 1 (API)",
            "change min and max, or use Linear",
        )


def _fixed(job: Job, tuning: Tuning) -> Iterator[Problem]:
    places: list[tuple[Key, dict[str, object]]] = [(("hyperparameters",), dict(job.hyperparameters))]
    if job.attempts != "auto":
        places += [
            (("attempts", index, "hyperparameters"), dict(attempt.hyperparameters))
            for index, attempt in enumerate(job.attempts)
        ]
    for field, table in places:
        for name in sorted(tuning.ranges.keys() & table.keys()):
            yield Problem((*field, name), f"is searched by tuning.ranges.{name} and set here too", "remove one of them")
    largest = max(len(job.hyperparameters | table) for _, table in places)
    total = largest + len(tuning.ranges) + own_hyperparameters(job)
    if total > most("hyperparameters"):
        yield Problem(
            ("tuning", "ranges"),
            f"a training job would have {total} hyperparameters, those that SageMaker and Sagefit add included; it "
            f"takes {most('hyperparameters')} (DG)",
            "put hyperparameters that never change into a file of the code",
        )


def _objective(job: Job, tuning: Tuning) -> Iterator[Problem]:
    names = [metric.name for metric in job.metrics]
    brings_its_own = brings_metrics(job.image) or job.image.algorithm_arn is not None
    if not brings_its_own and tuning.objective.metric not in names:
        known = ", ".join(names) if names else "there are none"
        yield Problem(
            ("tuning", "objective", "metric"),
            f"{tuning.objective.metric!r} is not among metrics: {known}",
            "add it to metrics with the regex that finds it in the log, or correct the name",
        )
    all_of_them = most("tuning.metrics")
    left = all_of_them - launcher_metrics(job)
    if len(names) > left:
        rule = f"{len(names)} metrics; a tuning job takes {all_of_them} (DG), which leaves {left}"
        yield Problem(("metrics",), rule, "remove some")


def _strategy(job: Job, tuning: Tuning) -> Iterator[Problem]:
    if tuning.strategy == "Grid":
        if numbers := [name for name, found in tuning.ranges.items() if isinstance(found, Range)]:
            yield Problem(
                ("tuning", "ranges", numbers[0]),
                "strategy Grid takes lists of values only (DG)",
                "write the values out, or use another strategy",
            )
        elif tuning.max_jobs is not None and tuning.max_jobs != tuning.combinations:
            yield Problem(
                ("tuning", "max_jobs"),
                f"is {tuning.max_jobs}; a grid tries each of its {tuning.combinations} combinations (DG)",
                "remove it",
            )
    if tuning.strategy == "Hyperband":
        if tuning.early_stopping:
            yield Problem(
                ("tuning", "early_stopping"), "Hyperband stops training jobs by its own rules (API)", "remove it"
            )
        if not any(name in job.hyperparameters for name in EPOCHS):
            yield Problem(
                ("tuning", "strategy"),
                f"Hyperband reads how long a training job may go on from {', '.join(EPOCHS)} (API), and none is set",
                "set hyperparameters.epochs, or use another strategy",
            )


def _names(job: Job) -> Iterator[Problem]:
    attempts = 1 if job.attempts == "auto" else len(job.attempts)
    left = MOST_NAME - len("-yymmdd-hhmmss-") - len(str(attempts - 1)) - len("b")
    if len(job.name) > left:
        yield Problem(
            ("name",),
            f"{len(job.name)} characters; with tuning at most {left}, because a tuning job adds the time and the "
            f"attempt to it and has {MOST_NAME} (API)",
            "rename the job",
        )
    if job.schedule is not None:
        yield Problem(
            ("schedule",),
            f"a job with tuning cannot have a schedule: the name of a scheduled run has 36 characters, and a "
            f"tuning job takes {MOST_NAME} (API)",
            "start the runs of a job with tuning from elsewhere, or remove tuning",
        )


def _not_with(job: Job) -> Iterator[Problem]:
    if job.resources.warm_pool:
        yield _cold(("resources", "warm_pool"))
    for index, attempt in enumerate([] if job.attempts == "auto" else job.attempts):
        if attempt.warm_pool:
            yield _cold(("attempts", index, "warm_pool"))
        if len(job.environment | attempt.environment) > most("tuning.environment"):
            yield _environment(("attempts", index, "environment"))
    if len(job.environment) > most("tuning.environment"):
        yield _environment(("environment",))
    yield from _arguments(job)
    for field in ("remote_debug", "profiler"):
        if getattr(job.resources, field):
            yield Problem(("resources", field), "training jobs of a tuning job have none (API)", "remove it")


def _arguments(job: Job) -> Iterator[Problem]:
    """With tuning the arguments are passed as one hyperparameter, in JSON as Terraform writes it."""
    if job.code is None:
        return
    isolated = ["--isolated"] if job.resources.network_isolation else []
    told = ["--entry-point", job.code.entry_point, *isolated, "--", *job.code.arguments]
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    size, longest = len(text) + 5 * sum(text.count(letter) for letter in "<>&"), most("hyperparameters.*.value")
    if size > longest:
        yield Problem(
            ("code", "arguments"),
            f"{size} characters together; with tuning they travel as one hyperparameter, which has {longest} (API)",
            "shorten them",
        )


def _cold(field: Key) -> Problem:
    return Problem(
        field,
        "SageMaker keeps no instances warm for training jobs of a tuning job: it drops the setting",
        "remove it, or remove tuning",
    )


def _environment(field: Key) -> Problem:
    return Problem(
        field,
        f"more than {most('tuning.environment')} variables; a tuning job takes 48 (API), and Sagefit sets one of them",
        "put the rest into a file of the code",
    )

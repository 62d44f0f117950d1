"""Regular expressions of metrics: the first group of one is the value (CreateTrainingJob, MetricDefinition)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sagefit.job.problem import Problem

if TYPE_CHECKING:
    from sagefit.job.model import Job


_EVERYWHERE = (
    "missing )",
    "unbalanced parenthesis",
    "unterminated character set",
    "bad character range",
    "bad escape (end of pattern)",
    "nothing to repeat",
)
"""Errors in every dialect. Other errors exist only in Python, and SageMaker does not document its own dialect."""


def compiled(regex: str) -> re.Pattern[str]:
    """A user's regular expression as Python reads it. Raises re.error.

    Python warns of what a later Python may read otherwise (``[+--a]``); its warning names a file of Python, says
    nothing of the job file, and SageMaker has a dialect of its own.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(regex)


def metric_problems(job: Job) -> Iterator[Problem]:
    """Metrics whose regular expression is invalid in every dialect."""
    for index, metric in enumerate(job.metrics):
        try:
            compiled(metric.regex)
        except re.error as error:
            if error.msg.startswith(_EVERYWHERE):
                at = "" if error.pos is None else f" at character {error.pos + 1}"
                message = f"'{metric.regex}' is no regular expression: {error.msg}{at}"
                yield Problem(("metrics", index, "regex"), message, "close what is open, or put a backslash before it")


def has_no_group(regex: str) -> bool:
    """Whether ``regex`` is valid and has no group."""
    try:
        return compiled(regex).groups == 0
    except re.error:
        return False

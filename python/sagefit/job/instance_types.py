"""Whether SageMaker trains on a type, and which one was meant where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sagefit.catalog import instances
from sagefit.job.key import Key
from sagefit.job.problem import Problem
from sagefit.nearest import did_you_mean, nearest


def type_problems(field: Key, ml_type: str) -> Iterator[Problem]:
    """What is wrong with an instance type by its name alone."""
    if ml_type not in instances():
        message = f"{ml_type!r} is no instance type that SageMaker trains on"
        otherwise = "types have names such as ml.m5.xlarge; modules/training-job/instances.csv lists all of them"
        several = re.split(r"[\s,;]+", ml_type.strip())
        if len(several) > 1 and all(nearest(each, instances()) for each in several):
            knob = f"write a list: [{', '.join(nearest(each, instances())[0] for each in several)}]"
        else:
            knob = did_you_mean(ml_type, instances(), otherwise)
        yield Problem(field, message, knob)

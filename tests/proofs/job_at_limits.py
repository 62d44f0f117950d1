"""A job that is as large as the module and the service allow in every direction that grows the definition."""

from __future__ import annotations

import itertools
from typing import Any

ATTEMPTS, CHANNELS = 10, 20
NAME = "j" * 40
_CLASSES = (
    "gpu_memory",
    "host_memory",
    "shared_memory",
    "disk",
    "capacity",
    "quota",
    "spot",
    "time",
    "data",
    "permission",
    "internal",
)
_TYPES = ("ml.g5.xlarge", "ml.g5.2xlarge", "ml.g5.4xlarge", "ml.g5.8xlarge", "ml.g5.16xlarge")
_HYPERPARAMETERS, _VARIABLES, _METRICS = 40, 40, 30


def attempt_name(index: int) -> str:
    """A name of 30 characters, the longest there may be."""
    return f"attempt-{index}-".ljust(30, "x")


def job_at_limits() -> dict[str, Any]:
    """Arguments of modules/training-job: all classes lead on, all steps give a warm pool back."""
    return {
        "name": NAME,
        "description": "d" * 200,
        "image": {"uri": f"123456789012.dkr.ecr.us-east-1.amazonaws.com/sagefit-private:{'t' * 128}"},
        "code": {"source_dir": "../modules/training-job/tests/example/code", "entry_point": "train.py"},
        # Code and launcher are channels too.
        "channels": {
            f"channel-{index:02}-".ljust(64, "c"): {"s3_uri": f"s3://my-data/{'p' * 900}/"}
            for index in range(CHANNELS - 2)
        },
        "hyperparameters": {f"hyperparameter_{index:02}": "v" * 200 for index in range(_HYPERPARAMETERS)},
        "environment": {f"VARIABLE_{index:02}": "v" * 200 for index in range(_VARIABLES)},
        "metric_definitions": [
            {"name": f"metric_{index:02}", "regex": f"metric_{index:02}=([0-9.]+)".ljust(300, "x")}
            for index in range(_METRICS)
        ],
        "attempts": [_attempt(index) for index in range(ATTEMPTS)],
        "resources": {"role": "shared"},  # no policy of a role has room for so many long names
    }


def _attempt(index: int) -> dict[str, Any]:
    later = list(range(index + 1, ATTEMPTS))
    # The next attempt for most classes, so that a run can walk all ten; the others in turn for the rest.
    targets = itertools.chain([later[0]] * 6, itertools.cycle(later)) if later else iter(())
    return {
        "name": attempt_name(index),
        "reason": "r" * 500,
        "instance_type": _TYPES[index % len(_TYPES)],
        "keep_alive_seconds": 1800,
        "max_runtime_seconds": 432000,
        "next": {name: attempt_name(target) for name, target in zip(_CLASSES, targets, strict=False)},
    }

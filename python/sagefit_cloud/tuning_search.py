"""Which hyperparameters the trials of a tuning job get.

Grid tries every combination once. Everything else is random search here: values are drawn independently, evenly on the
scale of their range, and a seed repeats them. Bayesian and Hyperband learn from earlier trials on AWS, and no light
library does that; so the embedded cloud shows how a job tunes, not how fast AWS finds the best.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

Tuned = dict[str, str]


def trials(config: dict[str, Any]) -> Iterator[Tuned]:
    """Hyperparameters for one trial after another, of a HyperParameterTuningJobConfig; only a grid comes to an end."""
    ranges: dict[str, Any] = config.get("ParameterRanges", {})
    categories = {item["Name"]: item["Values"] for item in ranges.get("CategoricalParameterRanges", [])}
    if config["Strategy"] == "Grid":
        for combination in itertools.product(*categories.values()):
            yield dict(zip(categories, combination, strict=True))
        return
    chance = random.Random(config.get("RandomSeed"))  # noqa: S311 - a search keeps no secret
    while True:
        tuned = {name: chance.choice(values) for name, values in categories.items()}
        for item in ranges.get("IntegerParameterRanges", []):
            tuned[item["Name"]] = str(round(_drawn(item, chance)))
        for item in ranges.get("ContinuousParameterRanges", []):
            tuned[item["Name"]] = repr(_drawn(item, chance))
        yield tuned


def _drawn(item: dict[str, Any], chance: random.Random) -> float:
    low, high, part = float(item["MinValue"]), float(item["MaxValue"]), chance.random()
    if item.get("ScalingType") == "Logarithmic":
        return min(high, max(low, math.exp(math.log(low) + part * (math.log(high) - math.log(low)))))
    if item.get("ScalingType") == "ReverseLogarithmic":  # even in the logarithm of what is left to 1
        far, near = math.log(1 - low), math.log(1 - high)
        return min(high, max(low, 1 - math.exp(far + part * (near - far))))
    return low + part * (high - low)

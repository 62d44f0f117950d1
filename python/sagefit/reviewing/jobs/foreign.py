"""State machines that train and are not Sagefit's: what their requests ask of SageMaker, counted and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sagefit.documents import parsed
from sagefit.reviewing.message import say
from sagefit.reviewing.rulebook import Hit

_PROTECTIONS = {
    "EnableNetworkIsolation": "job-isolation-off",
    "EnableInterContainerTrafficEncryption": "job-traffic-unencrypted",
    "EnableManagedSpotTraining": "job-spot-lost",
    "CheckpointConfig": "job-checkpoints-lost",
    "VpcConfig": "job-network-lost",
    "VolumeKmsKeyId": "encryption-off",
    "KmsKeyId": "encryption-off",
}
_LIMIT = "MaxRuntimeInSeconds"


def judge(old: Any, new: Any, factor: float) -> Iterator[Hit]:
    """Protections that fewer requests of the definition ``new`` ask for than those of ``old``; longer time limits."""
    before, after = _asked(parsed(old)), _asked(parsed(new))
    if not before["requests"] or not after["requests"]:
        return
    for name, rule in _PROTECTIONS.items():
        if after[name] < before[name] and after[name] < after["requests"]:
            yield Hit(rule, say("{} in {} requests, {} before", name, after[name], before[name]))
    if before[_LIMIT] and after[_LIMIT] > before[_LIMIT] * factor:
        yield Hit("job-runtime-grown", say("time limits: {} → {} seconds in all", before[_LIMIT], after[_LIMIT]))


def _asked(definition: Any) -> Counter[str]:
    """How many requests there are, how many ask for each protection, and the seconds they may take together."""
    found: Counter[str] = Counter()
    stack = [definition]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            found["requests"] += "createTrainingJob" in str(node.get("Resource"))
            for name, value in node.items():
                found[name] += name in _PROTECTIONS and bool(value)
                if name == _LIMIT and isinstance(value, int):
                    found[name] += value
            stack.extend(node.values())
    return found

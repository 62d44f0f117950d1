"""What a state machine asks of SageMaker, read from its definition wherever in it that stands.

A definition may carry its attempts as data, in a ``Pass`` state or in the choices of a ``Map``, and fill its requests
with paths. So nothing here depends on where a value stands: an instance type, an image and a location are told by their
form, everything else by the name of its key, in any way of writing it (``MaxRuntimeInSeconds``, ``max_runtime``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sagefit.catalog.hardware import Instances, hourly_price
from sagefit.documents import as_list, parsed
from sagefit.planning.planned import STOP_SECONDS

_CREATES = re.compile(r"create(Training|HyperParameterTuning|Processing|Transform|AutoML)", re.IGNORECASE)
_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9]+")
_ECR = re.compile(r"\d{12}\.dkr\.ecr[.\w-]*/\S+")
_BUCKET = re.compile(r"s3://([a-z0-9][a-z0-9.-]+)")
_ROLE = re.compile(r"arn:[\w-]+:iam::\d*:role/\S+")
_INWARD = re.compile(r"input|train|valid|test|data|source|channel")
_OUTWARD = re.compile(r"output|checkpoint|artifact|dest|export|tensorboard|model")
_DEFAULT_SECONDS = 86_400
"""The time limit of a training job whose request has none (CreateTrainingJob, StoppingCondition)."""
_TASK_RETRIES = 3
"""How often a state tries again where its ``Retry`` does not say it (Amazon States Language, MaxAttempts)."""

_IMAGES = ("trainingimage", "imageuri", "image", "containerimage")
_KEYS = ("kmskeyid", "kmskeyarn", "kmskey")
_ENVIRONMENTS = ("environment", "env", "environmentvariables")
_COUNTS = ("instancecount", "instances", "count")
_SECONDS = ("maxruntimeinseconds", "maxruntimeseconds", "maxruntime", "runtimeseconds", "runtime")
_FILE_SYSTEMS = ("filesystemid",)
_REPEATS = ("maximumretryattempts",)
_KEPT = ("keepaliveperiodinseconds", "keepaliveseconds", "keepalive")
_DEBUG = ("enableremotedebug", "remotedebug")
_OF_A_ROW = ("seconds", "timelimit", "timeout", "limitseconds")
"""Names of a time limit only beside an instance type: elsewhere they are about waiting."""
_COMPARED = re.compile(r"^(String|Numeric|Boolean|Timestamp|Is|Variable$|Comment$|Next$)")
PROTECTIONS = {
    "EnableNetworkIsolation": ("job-isolation-off", ("networkisolation", "isolation", "isolated")),
    "EnableInterContainerTrafficEncryption": ("job-traffic-unencrypted", ("encrypttraffic", "trafficencryption")),
    "EnableManagedSpotTraining": ("job-spot-lost", ("spot", "usespot", "usespotinstances", "managedspot")),
    "CheckpointConfig": ("job-checkpoints-lost", ("checkpoint", "checkpoints")),
    "VpcConfig": ("job-network-lost", ("vpc", "subnets", "subnetids")),
    "VolumeKmsKeyId": ("encryption-off", ("volumekmskeyarn", "volumekey")),
    "KmsKeyId": ("encryption-off", ("outputkmskeyid", "kmskeyarn")),
}
"""Fields of a request that protect: the rule about their loss, and what data calls them."""
_PROTECTS = {
    name: field
    for field, (_, others) in PROTECTIONS.items()
    for name in (field.lower(), field.lower().removeprefix("enable"), *others)
}


@dataclass(frozen=True)
class Unit:
    """Instances that a request, or a row of data for one, asks for, and how long each of its ``jobs`` may run."""

    instances: Instances
    seconds: int = _DEFAULT_SECONDS
    jobs: int = 1

    @property
    def paid_seconds(self) -> int:
        """The most that its jobs may run together, while they are stopped included."""
        return self.jobs * (self.seconds + STOP_SECONDS)


@dataclass
class Asked:
    """What the requests of a definition ask for together.

    ``requests``: tasks that create jobs. ``images``, ``roles``, ``keys``: URIs, ARNs and ids. ``inputs`` and
    ``outputs``: buckets and file systems. ``environment``: values by ``STATE.environment.NAME``. ``on`` and ``off``:
    how often each of `PROTECTIONS` is asked for and refused. ``seconds``: all time limits together. ``retries`` and
    ``kept_seconds``: the most of one. ``debugs``: requests that open a shell. ``locations``: places in S3 without
    ``s3://``. ``alternatives``: states with instances that a choice or a failure leads to.
    """

    requests: int = 0
    units: list[Unit] = field(default_factory=list)
    images: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    environment: dict[str, Any] = field(default_factory=dict)
    on: Counter[str] = field(default_factory=Counter)
    off: Counter[str] = field(default_factory=Counter)
    seconds: int = 0
    retries: int = 0
    kept_seconds: int = 0
    debugs: int = 0
    locations: set[str] = field(default_factory=set)
    alternatives: set[str] = field(default_factory=set)

    def usd(self, region: str) -> float | None:
        """What it costs if each request runs once to its limit, on demand; None where a price is not known."""
        prices = [(unit, hourly_price((unit.instances,), region, packaged=True)) for unit in self.units]
        if any(price is None for _, price in prices):
            return None
        return sum(price.usd_per_hour * unit.paid_seconds / 3600 for unit, price in prices if price)


def asked(definition: Any, inputs: Iterable[Any] = ()) -> Asked:
    """What ``definition``, a JSON text or the object of one, asks for; nothing where it is neither.

    ``inputs``: what its executions are given by the schedules that start them.
    """
    found = Asked()
    machine = parsed(definition)
    if isinstance(machine, dict):
        left, _ = _Reader(found).read([machine, *inputs], ("input",), "")
        found.units += [Unit(instances) for instances in left]
    return found


_Path = tuple[str, ...]
_Read = tuple[list[Instances], list[int]]


class _Reader:
    """Walks a definition. What it gives back of a part: instances without a time limit yet, and limits not used yet."""

    def __init__(self, found: Asked) -> None:
        self._found = found

    def read(self, node: Any, path: _Path, state: str) -> _Read:
        """Read ``node``, which stands at ``path`` in the state of that name."""
        node = parsed(node)
        if isinstance(node, dict):
            return self._object(node, path, state)
        if isinstance(node, list):
            return self._merged(self.read(each, path, state) for each in node)
        if isinstance(node, str):
            return self._text(node, path), self._limit(node, path)
        return [], self._limit(node, path)

    def _object(self, node: dict[str, Any], path: _Path, state: str) -> _Read:
        found, known = self._found, len(self._found.units)
        self._retries(node)
        left_out = set(node["States"]) - _reachable(node) if isinstance(node.get("States"), dict) else set()
        parts: list[_Read] = []
        for key, value in node.items():
            name = _plain(key)
            if name in _ENVIRONMENTS and isinstance(value, dict):
                found.environment |= {f"{state or 'data'}.environment.{each}": value[each] for each in value}
            elif key == "States" and isinstance(value, dict):
                for each in value.keys() - left_out:
                    parts.append(self._state(node, each, (*path, name)))
            elif not _COMPARED.match(key) and not key.endswith(".$"):
                self._protection(name, value)
                parts.append(self.read(value, (*path, name), state))
            elif key.endswith(".$") and isinstance(value, str):
                self._places(value, (*path, name))
        instances, limits = self._merged(parts)
        if any(_is_type(value) for value in node.values()):
            count = next((n for key, value in node.items() if _plain(key) in _COUNTS and (n := _number(value))), 1)
            instances = [each._replace(instance_count=count) for each in instances]
            own = [n for key, value in node.items() if _plain(key) in _OF_A_ROW and (n := _number(value))]
            found.seconds += sum(own)
            limits += own
        if instances and limits:
            found.units += [Unit(each, max(limits)) for each in instances]
            instances, limits = [], []
        if trials := _trials(node):
            found.units[known:] = [replace(unit, jobs=unit.jobs * trials) for unit in found.units[known:]]
        return instances, limits

    def _state(self, machine: dict[str, Any], name: str, path: _Path) -> _Read:
        """Read one state; where it has instances and a choice or a failure leads to it, it is an alternative."""
        known = len(self._found.units)
        instances, limits = self.read(machine["States"][name], path, name)
        if (instances or len(self._found.units) > known) and name in _alternatives(machine):
            self._found.alternatives.add(name)
        return instances, limits

    def _retries(self, node: dict[str, Any]) -> None:
        if _CREATES.search(str(node.get("Resource"))):
            self._found.requests += 1
            for retry in as_list(node.get("Retry")):
                most = retry.get("MaxAttempts", _TASK_RETRIES) if isinstance(retry, dict) else 0
                self._found.retries = max(self._found.retries, _number(most) or 0)

    @staticmethod
    def _merged(parts: Any) -> _Read:
        instances: list[Instances] = []
        limits: list[int] = []
        for of_part, limits_of_part in parts:
            instances += of_part
            limits += limits_of_part
        return instances, limits

    def _protection(self, name: str, value: Any) -> None:
        if protects := _PROTECTS.get(name):
            (self._found.on if value else self._found.off)[protects] += 1
        self._found.debugs += name in _DEBUG and value is True

    def _limit(self, value: Any, path: _Path) -> list[int]:
        number, name = _number(value), path[-1]
        if number is None:
            return []
        if name in _REPEATS:
            self._found.retries = max(self._found.retries, number)
        if name in _KEPT:
            self._found.kept_seconds = max(self._found.kept_seconds, number)
        if name not in _SECONDS:
            return []
        self._found.seconds += number
        return [number]

    def _text(self, text: str, path: _Path) -> list[Instances]:
        found, name = self._found, path[-1]
        if _is_type(text):
            return [Instances("", text, 1)]
        if _ECR.fullmatch(text) or (name in _IMAGES and not text.startswith(("$", "{%"))):
            found.images.add(text)
        elif _ROLE.fullmatch(text) and "role" in name:
            found.roles.add(text)
        elif name.endswith(_KEYS) and text:
            found.keys.add(text)
        elif name in _FILE_SYSTEMS:
            found.inputs.add(text)
        else:
            self._places(text, path)
        return []

    def _places(self, text: str, path: _Path) -> None:
        outward = False
        for name in reversed(path):  # the nearest key that says a direction
            if _OUTWARD.search(name) or _INWARD.search(name):
                outward = bool(_OUTWARD.search(name))
                break
        (self._found.outputs if outward else self._found.inputs).update(_BUCKET.findall(text))
        if text.startswith("s3://"):
            self._found.locations.add(text.removeprefix("s3://"))


def _reachable(machine: dict[str, Any]) -> set[str]:
    """The states that an execution can come to."""
    states, left, found = machine["States"], [machine.get("StartAt")], set[str]()
    if not isinstance(left[0], str) or left[0] not in states:
        return set(states)
    while left:
        name = left.pop()
        if isinstance(name, str) and name in states and name not in found:
            found.add(name)
            left += [target for target, _ in _targets(states[name])]
    return found


def _alternatives(machine: dict[str, Any]) -> set[str]:
    """The states of a machine that a choice or a failure leads to."""
    return {name for state in machine["States"].values() for name, chosen in _targets(state) if chosen}


def _targets(state: Any) -> Iterator[tuple[str, bool]]:
    """Where a state leads to, and whether by a choice or a failure."""
    if not isinstance(state, dict):
        return
    yield str(state.get("Next")), False
    yield str(state.get("Default")), True
    for rule in (*as_list(state.get("Choices")), *as_list(state.get("Catch"))):
        if isinstance(rule, dict):
            yield str(rule.get("Next")), True


def _trials(node: dict[str, Any]) -> int:
    """How many training jobs the request of a tuning job tries; 0 for any other object."""
    at: Any = node
    for key in ("HyperParameterTuningJobConfig", "ResourceLimits", "MaxNumberOfTrainingJobs"):
        at = at.get(key) if isinstance(at, dict) else None
    return _number(at) or 0


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.removesuffix(".$").lower())


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and _TYPE.fullmatch(value) is not None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None

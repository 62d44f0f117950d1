"""The faults file: what should go wrong, so that the way out of it can be tried.

A YAML list; the first entry that matches a training job and is not used up applies::

    - match: { job: "quick*", attempt: 0 }
      times: 1
      outcome: { status: Failed, failure_reason: "..." }

An entry with ``match.call`` is for requests of any service instead, by ``service:Action``. It throttles them, or has
the clock of whoever asks be wrong.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from sagefit.errors import SagefitError

_EXAMPLE = '{ match: { job: "bert*", attempt: 0 }, times: 1, outcome: { status: Failed, failure_reason: "..." } }'
_KINDS = (
    *("status", "api_error", "stopped", "interrupt_after_seconds", "interrupt_after_line"),
    *("throttle", "skew"),  # of requests, the first of training jobs too
)
_NAME = re.compile(r"(?P<job>.+)-\d{6}-\d{6}-(?P<attempt>\d+)[a-z]?(-\d{3,5}-[0-9a-f]{8})?")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Match(_Strict):
    """Which training jobs a fault is for, or with ``call`` which requests; what is left out matches all."""

    call: Annotated[str, Field(pattern=r"^[a-z0-9*?-]+(:[A-Za-z0-9*?]+)?$")] | None = None
    job: str = "*"
    attempt: Annotated[int, Field(ge=0)] | None = None
    instance_type: str = "*"

    def matches(self, training_job: str, instance_type: str) -> bool:
        """Whether a training job is meant. ``job`` is compared with the job's name and the training job's."""
        parts = _NAME.fullmatch(training_job)
        names = {training_job, parts["job"]} if parts else {training_job}
        attempt = int(parts["attempt"]) if parts else None
        return (
            any(fnmatchcase(name, self.job) for name in names)
            and self.attempt in (None, attempt)
            and fnmatchcase(instance_type, self.instance_type)
        )


class Outcome(_Strict):
    """What happens; exactly one kind.

    ``Completed`` is success without training, for tests of what follows. With ``created`` an API error is the answer
    to a request that was granted all the same, as when the connection breaks; the next fault says how the job ends.
    """

    status: Literal["Failed", "Completed"] | None = None
    failure_reason: Annotated[str, Field(max_length=1024)] | None = None
    api_error: str | None = None
    message: str | None = None
    created: bool = False
    stopped: Literal["MaxPendingTimeExceeded", "MaxWaitTimeExceeded", "MaxRuntimeExceeded", "Stopped"] | None = None
    interrupt_after_seconds: Annotated[float, Field(gt=0)] | None = None
    interrupt_after_line: Annotated[str, Field(min_length=1)] | None = None
    throttle: Annotated[int, Field(ge=1)] | None = None
    skew: float | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Outcome:
        if sum(getattr(self, kind) is not None for kind in _KINDS) != 1:
            raise ValueError(f"needs exactly one of {', '.join(_KINDS)}")
        if (self.failure_reason is None) != (self.status != "Failed"):
            raise ValueError("status Failed and failure_reason go together")
        if self.message is not None and self.api_error is None:
            raise ValueError("message goes with api_error")
        if self.created and self.api_error is None:
            raise ValueError("created goes with api_error")
        return self


class Fault(_Strict):
    """One entry of the file."""

    match: Match = Match()
    times: Annotated[int, Field(ge=1)] | None = None
    outcome: Outcome

    @model_validator(mode="after")
    def _of_calls_or_jobs(self) -> Fault:
        if self.match.call is not None:
            if self.outcome.throttle is None and self.outcome.skew is None:
                raise ValueError("match.call goes with outcome.throttle or outcome.skew")
            if self.outcome.skew is not None and self.times is not None:
                raise ValueError("a clock is wrong all the time: outcome.skew goes without times")
            if others := self.match.model_fields_set - {"call"}:
                raise ValueError(f"match.call is of requests, and match.{min(others)} of training jobs: give one")
        elif self.outcome.skew is not None:
            raise ValueError("outcome.skew is of requests: it goes with match.call")
        return self


@dataclass
class _Used:
    times: int = 0
    throttled: dict[str, int] = field(default_factory=dict)


class Faults:
    """The faults of a running cloud, and how often each was used."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults = [(fault, _Used()) for fault in faults]
        self._lock = threading.Lock()

    @classmethod
    def load(cls, path: Path) -> Faults:
        """Read a faults file."""
        return cls(load(path))

    def next(self, training_job: str, instance_type: str) -> Outcome | None:
        """What is to happen to this creation of a training job; uses the fault up by one.

        ``times`` counts creations the fault was applied to. A throttle refuses each training job it is applied to
        as often as it says, and counts once for it.
        """
        with self._lock:
            for fault, used in self._faults:
                if fault.match.call is not None or not fault.match.matches(training_job, instance_type):
                    continue
                if fault.outcome.throttle is None:
                    if fault.times is None or used.times < fault.times:
                        used.times += 1
                        return fault.outcome
                elif self._throttles(fault, used, training_job):
                    return fault.outcome
        return None

    def throttles(self, call: str, request: str) -> bool:
        """Whether this try of a request is refused.

        ``call`` is ``service:Action`` in botocore's words, ``request`` what all tries of the request have in common.
        The first fault that matches decides.
        """
        with self._lock:
            for fault, used in self._of_call(call):
                if fault.outcome.throttle is not None:
                    return self._throttles(fault, used, request)
        return False

    def skew(self, call: str) -> float:
        """By how many seconds the clock of who makes this request is ahead of AWS's; the first fault decides."""
        return next((skew for fault, _ in self._of_call(call) if (skew := fault.outcome.skew) is not None), 0.0)

    def _of_call(self, call: str) -> Iterator[tuple[Fault, _Used]]:
        for fault, used in self._faults:
            pattern = fault.match.call
            if pattern is not None and fnmatchcase(call, pattern if ":" in pattern else f"{pattern}:*"):
                yield fault, used

    @staticmethod
    def _throttles(fault: Fault, used: _Used, what: str) -> bool:
        seen = used.throttled
        if what not in seen and fault.times is not None and len(seen) >= fault.times:
            return False
        seen[what] = seen.get(what, 0) + 1
        return seen[what] <= (fault.outcome.throttle or 0)


def load(path: Path) -> list[Fault]:
    """Read and check a faults file; errors name the entry and the field."""
    try:
        data: Any = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise SagefitError(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise SagefitError(f"{path}: is no YAML: {error}") from error
    try:
        return TypeAdapter(list[Fault]).validate_python(data or [])
    except ValidationError as error:
        problems = "\n".join(f"{path}: {_place(item['loc'])}: {item['msg']}" for item in error.errors())
        raise SagefitError(problems, hint=f"a fault looks like: {_EXAMPLE}") from error


def _place(location: tuple[int | str, ...]) -> str:
    first, *rest = location or ("the file",)
    entry = f"fault {first + 1}" if isinstance(first, int) else str(first)
    return ".".join([entry, *map(str, rest)])

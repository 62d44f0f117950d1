"""The cases: what each shows, what it does, and how its runs are expected to end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from sagefit.acceptance.result import Status
from sagefit.errors import SagefitError
from sagefit.job import Job, load_job
from sagefit.nearest import did_you_mean
from sagefit.paths import ACCEPTANCE
from sagefit.running import RunRecord

JOBS = ACCEPTANCE / "jobs"
CI = "acceptance-ci"
"""The platform that a pipeline's role applies: with a key, private subnets, and no network in the containers."""


class End(BaseModel):
    """How a run ends: the status of its execution, and the outcome of each attempt.

    ``metrics`` are those of the last attempt that matter; ``warm_pool`` is what became of the instances it kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    status: str
    outcomes: list[str]
    metrics: dict[str, float] = {}
    warm_pool: str | None = None
    because: str = ""

    def differences(self, record: RunRecord, warm_pool: str | None) -> list[str]:
        """What of a run is not so, in words; ``warm_pool`` is what became of the instances of its last attempt."""
        last = record.attempts[-1] if record.attempts else None
        measured = last.metrics if last else {}
        pairs: list[tuple[str, object, object]] = [
            ("the run", record.status, self.status),
            ("its attempts", [attempt.outcome for attempt in record.attempts], self.outcomes),
            *((f"metric {name}", measured.get(name), value) for name, value in self.metrics.items()),
            *([("its instances", warm_pool, self.warm_pool)] if self.warm_pool else []),
        ]
        return [f"{what}: {_told(found)}, not {_told(wanted)}" for what, found, wanted in pairs if found != wanted]


def _told(value: object) -> str:
    return (
        ", ".join(value) or "none"
        if isinstance(value, list)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


class Case(BaseModel):
    """One case; its job is the file of its name in ``acceptance/jobs``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    shows: str
    does: Literal["run", "run_twice", "stop", "schedule", "apply_twice"] = "run"
    expects: list[End]
    unless: End | None = None

    @cached_property
    def job(self) -> Job:
        """Its job, as it lies in the checkout."""
        return load_job(str(JOBS / f"{self.name}.yaml"))

    def judged(self, records: Sequence[RunRecord], pools: Sequence[str | None]) -> tuple[Status, str]:
        """How its runs ended, beside how they should have; ``pools`` is what became of the instances of each."""
        wrong = [
            told
            for end, record, pool in zip(self.expects, records, pools, strict=True)
            for told in end.differences(record, pool)
        ]
        if wrong and self.unless and not self.unless.differences(records[0], pools[0]):
            return "not seen", self.unless.because
        wrong += [
            f"{attempt.name} was {attempt.outcome}, and the run took it for {attempt.routed_by}"
            for record in records
            for attempt in record.attempts
            if attempt.routed_by
        ]
        return ("differs", "; ".join(wrong)) if wrong else ("as expected", "")


def all_cases() -> list[Case]:
    """The cases in the order of ``acceptance/cases.yaml``."""
    text = (ACCEPTANCE / "cases.yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[Case]).validate_python(yaml.safe_load(text))


def chosen(names: Sequence[str]) -> list[Case]:
    """The cases of these names; all of them without names. Raises SagefitError for a name that there is not."""
    cases = all_cases()
    known = [case.name for case in cases]
    for name in names:
        if name not in known:
            raise SagefitError(f"no case {name!r}", hint=did_you_mean(name, known, f"there are: {', '.join(known)}"))
    return [case for case in cases if not names or case.name in names]

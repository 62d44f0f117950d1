"""A job's plan: made once, refused where it has no answer, and the same for all who ask."""

from __future__ import annotations

from typing import Any

import pytest

from job_files import auto_job
from sagefit.errors import DOES_NOT_FIT, SagefitError
from sagefit.job.values import as_text
from sagefit.memory.read import read
from sagefit.planning import JobPlan, job_plan, plan

NOWHERE = {"memory": {"model": {"family": "measured", "host_gib": 100_000}}, "resources.instance_type": "auto"}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The hyperparameters of each reading of the memory block."""
    seen: list[Any] = []

    def counted(job: Any, hyperparameters: Any, also: Any) -> Any:
        seen.append(hyperparameters)
        return read(job, hyperparameters, also)

    monkeypatch.setattr(job_plan, "read", counted)
    return seen


def test_a_job_that_fits_nowhere_is_refused_and_can_still_be_looked_at() -> None:
    job = auto_job(NOWHERE)
    with pytest.raises(SagefitError) as refused:
        plan(job)
    assert refused.value.exit_code == DOES_NOT_FIT
    looked_at = JobPlan(job)
    assert looked_at.chosen is None
    assert {candidate.verdict for candidate in looked_at.candidates} == {"OOM"}
    with pytest.raises(SagefitError) as again:
        _ = looked_at.text
    assert again.value.message == refused.value.message


def test_attempts_with_the_same_hyperparameters_are_read_once(reads: list[Any]) -> None:
    other = {"per_device_train_batch_size": 16, "learning_rate": 1e-5, "tf32": True}
    written = [
        {"name": "first", "instance_type": "ml.g5.xlarge"},
        {"name": "second", "instance_type": "ml.g5.2xlarge"},
        {"name": "smaller", "instance_type": "ml.g5.xlarge", "hyperparameters": other},
    ]
    planned = plan(auto_job({"attempts": written}))
    assert len(planned.attempts) == 3
    assert len(reads) == 2
    texts = {name: as_text(value) for name, value in (planned.job.hyperparameters | other).items()}
    assert planned.workload(texts).micro_batch == 16  # as AWS remembers what an attempt was started with
    assert planned.workload().micro_batch == 32
    assert len(reads) == 2


def test_all_parts_come_from_one_reading(reads: list[Any]) -> None:
    planned = plan(auto_job())
    names = ("candidates", "chosen", "attempts", "steps", "text", "advice")
    first = {name: getattr(planned, name) for name in names}
    assert all(getattr(planned, name) is part for name, part in first.items())
    assert len(reads) == 1

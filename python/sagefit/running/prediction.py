"""What is predicted for attempts that have run."""

from __future__ import annotations

from dataclasses import replace

from sagefit.catalog import instances
from sagefit.errors import SagefitError
from sagefit.memory import Placement, predict
from sagefit.planning import JobPlan
from sagefit.running.records import AttemptRecord, RunRecord


def expected(record: RunRecord, plan: JobPlan | None) -> RunRecord:
    """``record`` with the predictions of its attempts: those of today's formulas, without later measurements.

    AWS remembers the hyperparameters and instances of an attempt. The planner takes everything else from the job file
    of today. Without ``plan``, or when it does not describe its model, there are no predictions.
    """
    memory = plan.job.memory if plan else None
    if plan is None or memory is None or memory.model is None:
        return record
    return replace(record, attempts=[_expected(attempt, plan) for attempt in record.attempts])


def _expected(attempt: AttemptRecord, plan: JobPlan) -> AttemptRecord:
    instance = instances().get(attempt.instance_type)
    if instance is None or instance.trainium:
        return attempt
    try:
        workload = replace(plan.workload(attempt.hyperparameters), peaks=())
    except SagefitError:  # it ran with what today's job file contradicts
        return attempt
    prediction = predict(workload, Placement.on(instance, attempt.instance_count))
    if prediction is None:
        return attempt
    return replace(
        attempt,
        predicted_host_gib=prediction.host.point,
        predicted_gpu_gib=prediction.gpu.point if prediction.gpu else None,
    )

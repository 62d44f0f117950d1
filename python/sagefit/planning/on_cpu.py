"""What an attempt needs where its hosts have no GPU, as on the embedded cloud: the CPU trains."""

from __future__ import annotations

from sagefit.memory import Placement, Prediction, predict
from sagefit.planning.job_plan import JobPlan
from sagefit.planning.planned import PlannedAttempt


def predicted_on_cpu(plan: JobPlan, attempt: PlannedAttempt) -> Prediction | None:
    """The predicted peak of one host in GiB, ``prediction.host``, when ``attempt`` of ``plan`` runs without a GPU.

    All tensors are then in host memory, as many hosts as the attempt has share the training, and ``prediction.gpu`` is
    None. None where the job file says nothing of its memory. Raises SagefitError as `JobPlan.workload` does.
    """
    workload = plan.workload({**plan.job.hyperparameters, **attempt.hyperparameters})
    return predict(workload, Placement(hosts=attempt.instance_count))

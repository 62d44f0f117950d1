"""What an attempt needs where its hosts have no GPU, as on the embedded cloud: the CPU trains."""

from __future__ import annotations

from sagefit.attempts.planned import PlannedAttempt
from sagefit.job import Job
from sagefit.memory import Placement, Prediction, predict
from sagefit.memory.read import read


def predicted_on_cpu(job: Job, attempt: PlannedAttempt) -> Prediction | None:
    """The predicted peak of one host in GiB, ``prediction.host``, when ``attempt`` of ``job`` runs without a GPU.

    All tensors are then in host memory, as many hosts as the attempt has share the training, and ``prediction.gpu`` is
    None. None where the job file says nothing of its memory. Raises SagefitError as `sagefit.memory.read.read` does.
    """
    workload = read(job, {**job.hyperparameters, **attempt.hyperparameters})
    return predict(workload, Placement(hosts=attempt.instance_count))

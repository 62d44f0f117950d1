"""Built-in algorithms: what runs where a request names an image of AWS's own algorithms and no entrypoint.

XGBoost alone has a stand-in here, ``xgboost_algorithm.py``. Its metrics need no definitions, as on AWS: names and the
form of the log lines are those of sagemaker-xgboost-container, ``algorithm_mode/metrics.py``.
"""

from __future__ import annotations

from pathlib import Path

from sagefit_cloud import toolkit
from sagefit_cloud.ends import JobFailedError
from sagefit_cloud.jobs import TrainingJob
from sagefit_cloud.machine import framework_of

#: The peak of the fullest host, which the launcher prints for scripts and this cloud measures for algorithms.
PEAK_METRIC = "sagefit:host_memory_peak_gib"
_GIB = 1024**3
_NUMBER = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)"
_STAND_INS = {"xgboost": Path(__file__).with_name("xgboost_algorithm.py")}
# fmt: off
_METRICS = (
    "accuracy", "auc", "aucpr", "balanced_accuracy", "cox-nloglik", "error", "f1", "f1_macro", "gamma-deviance",
    "gamma-nloglik", "logloss", "mae", "map", "merror", "mlogloss", "mphe", "mse", "ndcg", "poisson-nloglik",
    "precision", "precision_macro", "precision_micro", "r2", "recall", "recall_macro", "recall_micro", "rmse",
    "rmsle", "tweedie-nloglik",
)
# fmt: on


def is_built_in(job: TrainingJob) -> bool:
    """Whether its image brings the program that runs."""
    return not job.request["AlgorithmSpecification"].get("ContainerEntrypoint") and toolkit.command(job) is None


def framework(job: TrainingJob) -> str:
    """Name of the list of packages that stands in for the job's image."""
    algorithm = job.request["AlgorithmSpecification"]
    if "TrainingImage" not in algorithm:
        raise JobFailedError(f"ClientError: the embedded cloud has no algorithm {algorithm['AlgorithmName']}")
    return framework_of(algorithm["TrainingImage"])


def command(job: TrainingJob) -> list[str]:
    """What starts on every host."""
    algorithm = job.request["AlgorithmSpecification"]
    if not is_built_in(job):
        own = [*algorithm.get("ContainerEntrypoint", []), *algorithm.get("ContainerArguments", [])]
        return own or toolkit.command(job) or []
    script = _STAND_INS.get(framework(job))
    if script is None:
        raise JobFailedError(
            "ClientError: the embedded cloud has no images, so it runs jobs with a ContainerEntrypoint, and of the "
            f"built-in algorithms {', '.join(_STAND_INS)} only"
        )
    if job.instance_count > 1:
        raise JobFailedError(
            f"ClientError: the embedded cloud trains built-in algorithms on one host, not {job.instance_count}"
        )
    return ["python3", str(script)]


def metric_definitions(job: TrainingJob) -> list[dict[str, str]]:
    """The job's own definitions, and those that its algorithm brings."""
    own = list(job.request["AlgorithmSpecification"].get("MetricDefinitions", []))
    if not is_built_in(job):
        return own
    return own + [
        {"Name": f"{channel}:{name}", "Regex": rf"\[[0-9]+\].*#011{channel}-{name}:{_NUMBER}"}
        for channel in ("train", "validation")
        for name in _METRICS
    ]


def peak(job: TrainingJob, bytes_used: int) -> dict[str, float]:
    """The measured peak of a host as a metric, where no launcher has measured it."""
    return {PEAK_METRIC: round(bytes_used / _GIB, 3)} if is_built_in(job) and bytes_used else {}

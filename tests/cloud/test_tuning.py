"""Tuning jobs whose trials really run."""

from __future__ import annotations

import itertools
import math
import time
from datetime import datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.aws_user import Aws
from sagefit_cloud import tuning_search

TRY = """
import json, os, time
root = os.environ["SAGEFIT_ML_ROOT"]
given = json.load(open(f"{root}/input/config/hyperparameters.json"))
time.sleep(float(given["seconds"]))
if given["colour"] == "red":
    raise SystemExit("red does not work")
print("score=" + str(int(given["depth"]) + (10 if given["colour"] == "blue" else 0)))
"""
COLOUR = {"Name": "colour", "Values": ["green", "blue"]}
DEPTH = {"Name": "depth", "MinValue": "1", "MaxValue": "5"}
_numbers = itertools.count()


def tuning_request(aws: Aws, **changes: Any) -> dict[str, Any]:
    """A tuning job in few words; changes are of its configuration, ``static`` its fixed hyperparameters."""
    name, static = f"tuning-{next(_numbers)}", changes.pop("static", {"seconds": "0"})
    training = aws.request(TRY, TrainingJobName=f"code-of-{name}")
    del training["TrainingJobName"]
    image = training["AlgorithmSpecification"]["TrainingImage"]
    training["AlgorithmSpecification"] = {
        "TrainingImage": image,
        "TrainingInputMode": "File",
        "MetricDefinitions": [{"Name": "score", "Regex": "score=([0-9.]+)"}],
    }
    started = {"sagemaker_program": "train.py", "sagemaker_submit_directory": "/opt/ml/input/data/code"}
    config: dict[str, Any] = {
        "Strategy": "Random",
        "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "score"},
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 2},
        "ParameterRanges": {"IntegerParameterRanges": [DEPTH], "CategoricalParameterRanges": [COLOUR]},
        "RandomSeed": 7,
    }
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": config | changes,
        "TrainingJobDefinition": training | {"StaticHyperParameters": started | static},
        "Tags": [{"Key": "team", "Value": "vision"}],
    }


def describe(aws: Aws, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = aws.client("sagemaker").describe_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=name
    )
    return answer


def wait(aws: Aws, name: str, *until: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        job = describe(aws, name)
        if job["HyperParameterTuningJobStatus"] in (until or ("Completed", "Failed", "Stopped")):
            return job
        time.sleep(0.1)
    pytest.fail(f"{name} did not end: {job}")


def run(aws: Aws, request: dict[str, Any]) -> dict[str, Any]:
    aws.client("sagemaker").create_hyper_parameter_tuning_job(**request)
    return wait(aws, request["HyperParameterTuningJobName"])


def listed(aws: Aws, name: str, **options: Any) -> list[dict[str, Any]]:
    answer = aws.client("sagemaker").list_training_jobs_for_hyper_parameter_tuning_job(
        HyperParameterTuningJobName=name, **options
    )
    found: list[dict[str, Any]] = answer["TrainingJobSummaries"]
    return found


def test_random_search_runs_its_trials_and_finds_the_best(aws: Aws) -> None:
    request = tuning_request(aws, static={"seconds": "0.3"})
    job = run(aws, request)

    assert job["HyperParameterTuningJobStatus"] == "Completed", job.get("FailureReason")
    assert job["TrainingJobStatusCounters"]["Completed"] == 3
    assert job["ObjectiveStatusCounters"] == {"Succeeded": 3, "Pending": 0, "Failed": 0}
    trials = listed(aws, job["HyperParameterTuningJobName"], SortBy="FinalObjectiveMetricValue", SortOrder="Descending")
    values = [trial["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] for trial in trials]
    assert values == sorted(values, reverse=True)
    assert job["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == values[0]
    for trial in trials:
        tuned = trial["TunedHyperParameters"]
        score = int(tuned["depth"]) + (10 if tuned["colour"] == "blue" else 0)
        assert trial["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == score
        found = aws.describe(trial["TrainingJobName"])
        assert found["TuningJobArn"] == job["HyperParameterTuningJobArn"]
        assert found["HyperParameters"].items() >= {**tuned, "_tuning_objective_metric": "score"}.items()
    assert most_at_a_time(trials) <= 2


def most_at_a_time(trials: list[dict[str, Any]]) -> int:
    spans: list[tuple[datetime, datetime]] = [(t["CreationTime"], t["TrainingEndTime"]) for t in trials]
    return max(sum(other[0] <= span[0] < other[1] for other in spans) for span in spans)


def test_a_grid_tries_every_combination_once(aws: Aws) -> None:
    ranges = {"CategoricalParameterRanges": [COLOUR, {"Name": "depth", "Values": ["1", "2"]}]}
    job = run(
        aws,
        tuning_request(aws, Strategy="Grid", ParameterRanges=ranges, ResourceLimits={"MaxParallelTrainingJobs": 4}),
    )
    trials = listed(aws, job["HyperParameterTuningJobName"])
    tried = sorted((t["TunedHyperParameters"]["colour"], t["TunedHyperParameters"]["depth"]) for t in trials)
    assert tried == [("blue", "1"), ("blue", "2"), ("green", "1"), ("green", "2")]


@pytest.mark.parametrize(("colours", "status"), [(["red"], "Failed"), (["red", "blue"], "Completed")])
def test_one_trial_that_ends_well_is_enough(aws: Aws, colours: list[str], status: str) -> None:
    ranges = {"CategoricalParameterRanges": [{"Name": "colour", "Values": colours}, {"Name": "depth", "Values": ["1"]}]}
    job = run(
        aws,
        tuning_request(aws, Strategy="Grid", ParameterRanges=ranges, ResourceLimits={"MaxParallelTrainingJobs": 1}),
    )
    assert job["HyperParameterTuningJobStatus"] == status
    assert ("BestTrainingJob" in job) is (status == "Completed")
    assert ("All training jobs failed" in job.get("FailureReason", "")) is (status == "Failed")
    [failed] = listed(aws, job["HyperParameterTuningJobName"], StatusEquals="Failed", SortBy="CreationTime")
    assert failed["FailureReason"].startswith("AlgorithmError")
    assert failed["ObjectiveStatus"] == "Failed"


def test_stopping_stops_what_runs_and_starts_no_more(aws: Aws) -> None:
    request = tuning_request(aws, static={"seconds": "60"}, ResourceLimits={
        "MaxNumberOfTrainingJobs": 9, "MaxParallelTrainingJobs": 1,
    })  # fmt: skip
    name = request["HyperParameterTuningJobName"]
    aws.client("sagemaker").create_hyper_parameter_tuning_job(**request)
    while not (trials := listed(aws, name)):
        time.sleep(0.1)
    aws.wait_until(trials[0]["TrainingJobName"], ("Training",))
    aws.client("sagemaker").stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)
    job = wait(aws, name)
    assert job["HyperParameterTuningJobStatus"] == "Stopped"
    assert [trial["TrainingJobStatus"] for trial in listed(aws, name)] == ["Stopped"]
    with pytest.raises(ClientError, match="is in status Stopped"):
        aws.client("sagemaker").stop_hyper_parameter_tuning_job(HyperParameterTuningJobName=name)


def test_a_trial_that_may_not_start_fails_the_search(aws: Aws) -> None:
    request = tuning_request(aws)
    request["TrainingJobDefinition"]["ResourceConfig"] |= {"InstanceType": "ml.g5.xlarge", "InstanceCount": 5}
    job = run(aws, request)
    assert job["HyperParameterTuningJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("ResourceLimitExceeded: The account-level service limit")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Strategy": "Guess"}, "enum value set"),
        ({"Strategy": "Grid"}, "Grid takes categorical"),
        ({"ResourceLimits": {"MaxParallelTrainingJobs": 1}}, "MaxNumberOfTrainingJobs is required"),
        ({"ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 2}}, "must not be greater"),
        ({"ParameterRanges": {}}, "1 to 30"),
        ({"static": {"depth": "1"}}, r"\['depth'\] are in StaticHyperParameters"),
        ({"ParameterRanges": {"IntegerParameterRanges": [DEPTH, DEPTH]}}, "must be unique"),
        ({"ParameterRanges": {"IntegerParameterRanges": [DEPTH | {"MinValue": "5"}]}}, "less than MaxValue"),
        ({"Strategy": "Hyperband", "TrainingJobEarlyStoppingType": "Auto"}, "must be Off"),
    ],
)
def test_refusals(aws: Aws, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ClientError, match=message):
        aws.client("sagemaker").create_hyper_parameter_tuning_job(**tuning_request(aws, **changes))


def test_names_are_used_once(aws: Aws) -> None:
    request = tuning_request(aws, ResourceLimits={"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1})
    run(aws, request)
    with pytest.raises(ClientError, match="already exists"):
        run(aws, request)
    name = request["HyperParameterTuningJobName"]
    pages = aws.client("sagemaker").get_paginator("list_hyper_parameter_tuning_jobs").paginate(NameContains=name)
    [line] = pages.build_full_result()["HyperParameterTuningJobSummaries"]
    assert (line["HyperParameterTuningJobName"], line["Strategy"]) == (name, "Random")


def numbers(scaling: str, low: str, high: str, *, seed: int = 1) -> list[float]:
    item = {"Name": "x", "MinValue": low, "MaxValue": high, "ScalingType": scaling}
    config = {"Strategy": "Bayesian", "RandomSeed": seed, "ParameterRanges": {"ContinuousParameterRanges": [item]}}
    return [float(tuned["x"]) for tuned in itertools.islice(tuning_search.trials(config), 400)]


def test_a_seed_repeats_a_search() -> None:
    assert numbers("Auto", "0", "1") == numbers("Auto", "0", "1") != numbers("Auto", "0", "1", seed=2)


@pytest.mark.parametrize(
    ("scaling", "low", "high", "middle"),
    [("Linear", "0", "10", 5.0), ("Logarithmic", "0.0001", "1", 0.01), ("ReverseLogarithmic", "0.9", "0.9999", 0.9968)],
)
def test_values_are_even_on_their_scale(scaling: str, low: str, high: str, middle: float) -> None:
    found = numbers(scaling, low, high)
    assert all(float(low) <= value <= float(high) for value in found)
    below = sum(value < middle for value in found) / len(found)
    assert math.isclose(below, 0.5, abs_tol=0.1)

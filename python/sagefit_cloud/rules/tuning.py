"""Rules of ``CreateHyperParameterTuningJob``."""

from __future__ import annotations

import math
from typing import Any

from sagefit.job.image_table import is_algorithm
from sagefit_cloud.rules.table import RULES, Answers, Place, Request, among_others, of, repeated

_CREATE = "sagemaker:CreateHyperParameterTuningJob"
_MOST_RANGES, _MOST_PARAMETERS, _ADDED = 30, 100, 1  # the name of the objective is added to those of each training job
_EPOCHS = frozenset(("epochs", "numepochs", "n-epochs", "n_epochs", "num_epochs"))


def _numbers(request: Request) -> list[dict[str, Any]]:
    ranges = request["HyperParameterTuningJobConfig"].get("ParameterRanges", {})
    return [*ranges.get("IntegerParameterRanges", []), *ranges.get("ContinuousParameterRanges", [])]


def _searched(request: Request) -> list[str]:
    ranges = request["HyperParameterTuningJobConfig"].get("ParameterRanges", {})
    return [item["Name"] for item in [*_numbers(request), *ranges.get("CategoricalParameterRanges", [])]]


def _fixed(request: Request) -> dict[str, str]:
    fixed: dict[str, str] = request["TrainingJobDefinition"].get("StaticHyperParameters", {})
    return fixed


@of(_CREATE)
def one_definition(request: Request) -> Answers:
    """This cloud takes one definition of training jobs; AWS takes a list of them too."""
    if "TrainingJobDefinition" not in request:
        yield "The embedded cloud takes a TrainingJobDefinition, and no list of them"


@among_others(_CREATE)
def training_jobs_of_a_search(request: Request, place: Place) -> Answers:
    """The training jobs of a search obey the rules of training jobs."""
    for rule in RULES["sagemaker:CreateTrainingJob"]:
        yield from rule(request["TrainingJobDefinition"], place)


@of(_CREATE)
def objective_of_a_search(request: Request) -> Answers:
    """A search has an objective."""
    if "HyperParameterTuningJobObjective" not in request["HyperParameterTuningJobConfig"]:
        yield "HyperParameterTuningJobObjective is required"


@of(_CREATE)
def number_of_searched_hyperparameters(request: Request) -> Answers:
    """A search is over 1 to 30 hyperparameters."""
    if not 1 <= len(_searched(request)) <= _MOST_RANGES:
        yield f"A tuning job searches over 1 to {_MOST_RANGES} hyperparameters, not {len(_searched(request))}"


@of(_CREATE)
def searched_once(request: Request) -> Answers:
    """A hyperparameter has one range."""
    if repeated(_searched(request)):
        yield "Hyperparameters in ParameterRanges must be unique"


@of(_CREATE)
def searched_or_fixed(request: Request) -> Answers:
    """A hyperparameter is searched or fixed, not both."""
    if both := sorted(set(_searched(request)) & set(_fixed(request))):
        yield f"Hyperparameters {both} are in StaticHyperParameters and in ParameterRanges"


@of(_CREATE)
def hyperparameters_of_a_trial(request: Request) -> Answers:
    """What is searched, what is fixed and the name of the objective are at most 100."""
    if len(_fixed(request)) + len(_searched(request)) + _ADDED > _MOST_PARAMETERS:
        yield f"A training job takes {_MOST_PARAMETERS} hyperparameters, the one of the objective included"


@of(_CREATE)
def order_of_a_range(request: Request) -> Answers:
    """A range begins below its end."""
    for item in _numbers(request):
        if float(item["MinValue"]) >= float(item["MaxValue"]):
            yield f"MinValue of {item['Name']} must be less than MaxValue"


@of(_CREATE)
def scaling_of_a_range(request: Request) -> Answers:
    """A logarithmic scale is above 0, a reverse logarithmic one within 0 and 1."""
    for item in _numbers(request):
        low, high, scaling = float(item["MinValue"]), float(item["MaxValue"]), item.get("ScalingType", "Auto")
        if scaling == "Logarithmic" and low <= 0:
            yield f"Logarithmic scaling of {item['Name']} works only for values greater than 0"
        if scaling == "ReverseLogarithmic" and not 0 <= low < high < 1:
            yield f"ReverseLogarithmic scaling of {item['Name']} works only within 0 <= x < 1.0"


@of(_CREATE)
def grid_of_categories(request: Request) -> Answers:
    """A grid is over categories."""
    if request["HyperParameterTuningJobConfig"]["Strategy"] == "Grid" and _numbers(request):
        yield "Grid takes categorical hyperparameters only"


@of(_CREATE)
def number_of_trials(request: Request) -> Answers:
    """A search that is no grid says how many training jobs it takes."""
    config = request["HyperParameterTuningJobConfig"]
    if config["Strategy"] != "Grid" and "MaxNumberOfTrainingJobs" not in config["ResourceLimits"]:
        yield "MaxNumberOfTrainingJobs is required"


@of(_CREATE)
def trials_at_once(request: Request) -> Answers:
    """No more training jobs run at once than there are."""
    limits = request["HyperParameterTuningJobConfig"]["ResourceLimits"]
    most = limits.get("MaxNumberOfTrainingJobs")
    if most is not None and limits["MaxParallelTrainingJobs"] > most:
        yield "MaxParallelTrainingJobs must not be greater than MaxNumberOfTrainingJobs"


@of(_CREATE)
def early_stop_of_hyperband(request: Request) -> Answers:
    """Hyperband stops trials in its own way."""
    config = request["HyperParameterTuningJobConfig"]
    if config["Strategy"] == "Hyperband" and config.get("TrainingJobEarlyStoppingType") == "Auto":
        yield "TrainingJobEarlyStoppingType must be Off to use Hyperband"


@of(_CREATE)
def values_of_a_category(request: Request) -> Answers:
    """A category has no value twice."""
    ranges = request["HyperParameterTuningJobConfig"].get("ParameterRanges", {})
    for item in ranges.get("CategoricalParameterRanges", []):
        if twice := repeated(item["Values"]):
            yield f"Values of {item['Name']} must be unique: {', '.join(twice)}"


@of(_CREATE)
def objective_among_metrics(request: Request) -> Answers:
    """The objective is a metric that the request defines, unless the algorithm defines it."""
    algorithm = request["TrainingJobDefinition"]["AlgorithmSpecification"]
    if is_algorithm(algorithm.get("TrainingImage", "")) or "AlgorithmName" in algorithm:
        return
    metric = request["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]["MetricName"]
    if metric not in [each["Name"] for each in algorithm.get("MetricDefinitions", [])]:
        yield (
            "A metric is required for this hyperparameter tuning job objective. Provide a metric in the metric "
            "definitions."
        )


@of(_CREATE)
def enough_combinations(request: Request) -> Answers:
    """Whole numbers and categories have as many combinations as there are trials."""
    config = request["HyperParameterTuningJobConfig"]
    ranges, most = config.get("ParameterRanges", {}), config["ResourceLimits"].get("MaxNumberOfTrainingJobs")
    if most is None or ranges.get("ContinuousParameterRanges") or config["Strategy"] == "Grid":
        return
    whole = [int(float(each["MaxValue"])) - int(float(each["MinValue"])) + 1 for each in _numbers(request)]
    found = math.prod(whole + [len(each["Values"]) for each in ranges.get("CategoricalParameterRanges", [])])
    if found < most:
        yield (
            "You don't have enough combinations of hyperparameter ranges. The total number of hyperparameter "
            f"combinations for the provided ranges [{found:.1f}] must be equal or greater than the value of "
            f"MaxNumberOfJobs, [{most}]. Provide additional ranges."
        )


@of(_CREATE)
def budget_of_hyperband(request: Request) -> Answers:
    """Hyperband knows how long a trial may be, from its settings or from a hyperparameter that counts epochs."""
    config = request["HyperParameterTuningJobConfig"]
    given = config.get("StrategyConfig", {}).get("HyperbandStrategyConfig", {}).get("MaxResource")
    if config["Strategy"] == "Hyperband" and given is None and not _EPOCHS & set(_fixed(request)):
        names = ", ".join(sorted(_EPOCHS))
        yield f"HyperbandStrategyConfig needs MaxResource, or StaticHyperParameters one of {names}"


@of(_CREATE)
def settings_of_hyperband(request: Request) -> Answers:
    """Settings of a strategy are for Hyperband."""
    config = request["HyperParameterTuningJobConfig"]
    if "StrategyConfig" in config and config["Strategy"] != "Hyperband":
        yield "StrategyConfig can be provided for the Hyperband strategy only"

"""The built-in XGBoost algorithm as its users see it: data, hyperparameters, log lines, model, checkpoints, failures.

A script of its own that runs in the environment of the XGBoost image. It follows the developer guide ("XGBoost
algorithm with Amazon SageMaker AI") and the open-source image (aws/sagemaker-xgboost-container, ``algorithm_mode``):
channels ``train`` and ``validation`` hold CSV without a header, the label first, or LibSVM, which is what a channel
without a content type is taken for; a round prints ``[n]#011train-rmse:...#011validation-rmse:...``.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(os.environ.get("SAGEFIT_ML_ROOT", "/opt/ml"))
MODEL = "xgboost-model"
CHECKPOINT = "xgboost-checkpoint"
KEPT = 5  # checkpoints
CHANNELS = ("train", "validation")
OBJECTIVE = "reg:squarederror"
#: Hyperparameters of the algorithm that are none of the booster's.
OWN = {"num_round", "early_stopping_rounds", "csv_weights", "eval_metric", "_tuning_objective_metric"}
# fmt: off
BOOSTER = {
    "alpha", "aft_loss_distribution", "aft_loss_distribution_scale", "base_score", "booster", "colsample_bylevel",
    "colsample_bynode", "colsample_bytree", "deterministic_histogram", "dsplit", "eta", "gamma", "grow_policy",
    "huber_slope", "interaction_constraints", "lambda", "lambda_bias", "max_bin", "max_delta_step", "max_depth",
    "max_leaves", "min_child_weight", "monotone_constraints", "normalize_type", "nthread", "num_class",
    "num_parallel_tree", "objective", "one_drop", "process_type", "rate_drop", "refresh_leaf", "sample_type",
    "sampling_method", "save_model_on_termination", "scale_pos_weight", "seed", "single_precision_histogram",
    "skip_drop", "subsample", "tree_method", "tweedie_variance_power", "updater", "verbosity",
}
# fmt: on
NOT_BOOSTER = {"save_model_on_termination", "dsplit"}
RANGES = {
    "eta": (0, 1),
    "subsample": (0, 1),
    "colsample_bytree": (0, 1),
    "colsample_bylevel": (0, 1),
    "colsample_bynode": (0, 1),
    "gamma": (0, None),
    "lambda": (0, None),
    "alpha": (0, None),
    "min_child_weight": (0, None),
    "max_depth": (0, None),
}


class ClientError(Exception):
    """A mistake in the job; the text is its FailureReason."""


class Table(NamedTuple):
    """One channel's data: features by row, labels, and weights where the job gives them."""

    features: Any
    labels: Any
    weights: Any


def main() -> None:
    """Train and save the model."""
    hyperparameters = _read("hyperparameters")
    booster, rounds = _checked(hyperparameters)
    tables = _tables(hyperparameters.get("csv_weights") == "1")
    model = _train(hyperparameters, booster, rounds, tables)
    (ROOT / "model").mkdir(parents=True, exist_ok=True)
    _save(model, ROOT / "model" / MODEL)


def _checked(hyperparameters: dict[str, str]) -> tuple[dict[str, str], int]:
    """The booster's parameters and the number of rounds."""
    unknown = sorted(set(hyperparameters) - OWN - BOOSTER)
    if unknown:
        raise ClientError(f"Extraneous hyperparameter found: {', '.join(unknown)}")
    if "num_round" not in hyperparameters:
        raise ClientError("Missing required hyperparameter: num_round")
    rounds = int(_number("num_round", hyperparameters["num_round"], 1, None, whole=True))
    for name, (least, most) in RANGES.items():
        if name in hyperparameters:
            _number(name, hyperparameters[name], least, most, whole=name == "max_depth")
    objective = hyperparameters.get("objective", OBJECTIVE)
    if objective.startswith("multi:") and "num_class" not in hyperparameters:
        raise ClientError(f"Hyperparameter num_class is required with objective {objective}")
    kept = {name: hyperparameters[name] for name in hyperparameters if name in BOOSTER - NOT_BOOSTER}
    return {"objective": OBJECTIVE, **kept}, rounds


def _number(name: str, text: str, least: float, most: float | None, *, whole: bool) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise ClientError(f"Hyperparameter {name}: could not parse {text!r} as a number") from None
    if value < least or (most is not None and value > most):
        allowed = f"in [{least}, {most}]" if most is not None else f"at least {least}"
        raise ClientError(f"Hyperparameter {name}: {text} is not {allowed}")
    return value


def _tables(weighted: bool) -> dict[str, Table]:
    channels = _read("inputdataconfig")
    if "train" not in channels:
        raise ClientError("Missing required channel: train")
    unknown = sorted(set(channels) - set(CHANNELS))
    if unknown:
        raise ClientError(f"Extraneous channel found: {', '.join(unknown)}; XGBoost reads train and validation")
    kinds: dict[str, str] = {name: _kind(name, channels[name]) for name in CHANNELS if name in channels}
    if len(set(kinds.values())) > 1:
        raise ClientError(f"Channels differ in their content type: {kinds}")
    files = {name: _files(name) for name in kinds}
    return _csv(files, weighted) if kinds["train"] == "csv" else _libsvm(files)


def _kind(name: str, channel: dict[str, str]) -> str:
    if channel["TrainingInputMode"] == "Pipe":
        raise ClientError(f"channel {name}: this stand-in for XGBoost reads File and FastFile mode only")
    kind = (channel["ContentType"] or "text/libsvm").split(";")[0].strip().lower()
    if kind in ("text/csv", "csv"):
        return "csv"
    if kind in ("text/libsvm", "text/x-libsvm", "libsvm"):
        return "libsvm"
    raise ClientError(f"channel {name}: this stand-in for XGBoost reads text/csv and text/libsvm, not {kind}")


def _files(name: str) -> list[Path]:
    folder = ROOT / "input" / "data" / name
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_")))
    if not any(path.stat().st_size for path in found):
        raise ClientError(f"channel {name} has no data")
    return [path for path in found if path.stat().st_size]


def _csv(files: Mapping[str, list[Path]], weighted: bool) -> dict[str, Table]:
    numpy = _library("numpy")
    tables = {}
    for name, paths in files.items():
        parts = [_csv_file(path) for path in paths]
        if len({part.shape[1] for part in parts}) > 1:
            raise ClientError(f"channel {name}: files have different numbers of columns")
        table = numpy.concatenate(parts)
        first = 2 if weighted else 1
        tables[name] = Table(table[:, first:], table[:, 0], table[:, 1] if weighted else None)
    return tables


def _csv_file(path: Path) -> Any:
    numpy = _library("numpy")
    with path.open(errors="replace") as file:
        first = file.readline().strip()
    if "," not in first:
        raise ClientError(f"First line '{first[:50]}...' of file '{path.name}' is not 'CSV' format.")
    for cell in first.split(","):
        try:
            float(cell or "nan")
        except ValueError:
            raise ClientError(
                f"Non-numeric value '{cell[:50]}' found in the first line of file '{path.name}'. CSV has no header "
                "line and only numbers here, the label first"
            ) from None
    try:
        table = numpy.genfromtxt(path, delimiter=",", dtype="float32", ndmin=2)
    except ValueError as error:
        raise ClientError(f"Failed to load csv data of file '{path.name}': {' '.join(str(error).split())}") from error
    if numpy.isnan(table[:, 0]).any():
        raise ClientError(f"Failed to load csv data of file '{path.name}': a label is missing or no number")
    return table


def _libsvm(files: Mapping[str, list[Path]]) -> dict[str, Table]:
    numpy, sparse = _library("numpy"), _library("scipy.sparse")
    for path in (path for paths in files.values() for path in paths):
        with path.open(errors="replace") as file:
            first = file.readline().strip()
        if "," in first or ":" not in first:
            raise ClientError(f"First line '{first[:50]}...' of file '{path.name}' is not 'LIBSVM' format.")
    flat = [str(path) for paths in files.values() for path in paths]
    try:
        loaded = iter(_library("sklearn.datasets").load_svmlight_files(flat, dtype="float32"))
    except ValueError as error:
        raise ClientError(f"Failed to load libsvm data: {error}") from error
    tables = {}
    for name, paths in files.items():
        parts = [(next(loaded), next(loaded)) for _ in paths]
        features = sparse.vstack([part[0] for part in parts]).tocsr()
        tables[name] = Table(features, numpy.concatenate([part[1] for part in parts]), None)
    return tables


def _train(hyperparameters: dict[str, str], booster: dict[str, str], rounds: int, tables: dict[str, Table]) -> Any:
    xgboost = _library("xgboost")
    matrices = {
        name: xgboost.DMatrix(table.features, label=table.labels, weight=table.weights)
        for name, table in tables.items()
    }
    wanted = [name for name in hyperparameters.get("eval_metric", "").split(",") if name]
    tuned = hyperparameters.get("_tuning_objective_metric", "").partition(":")[2]
    metrics = [*wanted, tuned] if tuned and tuned not in wanted else wanted
    early = hyperparameters.get("early_stopping_rounds")
    checkpoints = _Checkpoints()
    start, before = checkpoints.latest()
    if start:
        print(f"Resuming from iteration {start}", flush=True)
    print(f"Train matrix has {matrices['train'].num_row()} rows and {matrices['train'].num_col()} columns", flush=True)
    try:
        return xgboost.train(
            {**booster, **({"eval_metric": metrics} if metrics else {})},
            matrices["train"],
            num_boost_round=max(0, rounds - start),
            evals=[(matrix, name) for name, matrix in matrices.items()],
            early_stopping_rounds=int(early) if early else None,
            verbose_eval=False,
            xgb_model=bytearray(before.read_bytes()) if before else None,
            callbacks=[
                _after_each_round(xgboost, lambda _model, number, scores: _print_round(number, scores), start),
                _after_each_round(xgboost, checkpoints.save, start),
            ],
        )
    except xgboost.core.XGBoostError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise ClientError(f"XGB train call failed with exception: {lines[0]}") from error


def _print_round(number: int, evals_log: Mapping[str, Mapping[str, list[float]]]) -> None:
    """Prints the line of a round in the form of the algorithm's log, where #011 stands for a tab."""
    scores = [
        f"{data}-{metric}:{values[-1]:.5f}" for data, metrics in evals_log.items() for metric, values in metrics.items()
    ]
    print("#011".join([f"[{number}]", *scores]), flush=True)


def _after_each_round(xgboost: Any, do: Callable[[Any, int, Any], None], start: int) -> Any:
    """A callback that gets the model, the number of the round (the first is ``start``) and the scores so far."""

    def after_iteration(_self: Any, model: Any, epoch: int, evals_log: Any) -> bool:
        do(model, start + epoch, evals_log)
        return False

    return type("AfterEachRound", (xgboost.callback.TrainingCallback,), {"after_iteration": after_iteration})()


class _Checkpoints:
    """A model after each round in the checkpoint folder, where the job has one; the newest are kept."""

    def __init__(self) -> None:
        config = _read("checkpointconfig")
        local = str(config.get("LocalPath") or "/opt/ml/checkpoints")
        self._folder = ROOT / local.removeprefix("/opt/ml/") if config else None

    def latest(self) -> tuple[int, Path | None]:
        """How many rounds are done, and the model of the last."""
        found = self._saved()
        if not found:
            return 0, None
        last = max(found)
        print(f"Checkpoint loaded from {found[last].name}", flush=True)
        return last + 1, found[last]

    def save(self, model: Any, number: int, _evals_log: Any) -> None:
        """Save the model of a round."""
        if self._folder:
            self._folder.mkdir(parents=True, exist_ok=True)
            _save(model, self._folder / f"{CHECKPOINT}.{number}")
            for old, path in self._saved().items():
                if old <= number - KEPT:
                    path.unlink()

    def _saved(self) -> dict[int, Path]:
        names = self._folder.glob(f"{CHECKPOINT}.*") if self._folder else []
        return {int(path.name.rpartition(".")[2]): path for path in names}


def _save(model: Any, path: Path) -> None:
    part = path.with_name(f".{path.name}")
    part.write_bytes(model.save_raw())
    part.replace(path)


def _library(name: str) -> Any:
    """A package of the image; the program that brings this script need not have it."""
    return importlib.import_module(name)


def _read(name: str) -> dict[str, Any]:
    path = ROOT / "input" / "config" / f"{name}.json"
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return content


if __name__ == "__main__":
    try:
        main()
    except ClientError as problem:
        print(f"ERROR: {problem}", flush=True)
        (ROOT / "output").mkdir(parents=True, exist_ok=True)
        (ROOT / "output" / "failure").write_text(f"ClientError: {problem}")
        sys.exit(1)

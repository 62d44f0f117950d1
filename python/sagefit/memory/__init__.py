"""Predicted peak memory of a training job, per GPU and per host."""

from sagefit.memory.prediction import forget, predict
from sagefit.memory.workload import (
    GIB,
    Diffusion,
    Estimate,
    Measured,
    Peak,
    Placement,
    Prediction,
    Tabular,
    Traced,
    Transformer,
    Vision,
    Workload,
)

__all__ = [
    "GIB",
    "Diffusion",
    "Estimate",
    "Measured",
    "Peak",
    "Placement",
    "Prediction",
    "Tabular",
    "Traced",
    "Transformer",
    "Vision",
    "Workload",
    "forget",
    "predict",
]

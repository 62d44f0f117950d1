"""Runs: start one, watch it, stop it, and read what its attempts did."""

from sagefit.running.execution import find_run, latest_runs, running_runs, runs, stop
from sagefit.running.following import watch
from sagefit.running.ledger import read_run
from sagefit.running.logs import last_lines, tails
from sagefit.running.peaks import measured
from sagefit.running.prediction import expected
from sagefit.running.processing import LOG_GROUP as PROCESSING_LOGS
from sagefit.running.records import AttemptRecord, Run, RunRecord
from sagefit.running.resuming import resumable
from sagefit.running.starting import start

__all__ = [
    "PROCESSING_LOGS",
    "AttemptRecord",
    "Run",
    "RunRecord",
    "expected",
    "find_run",
    "last_lines",
    "latest_runs",
    "measured",
    "read_run",
    "resumable",
    "running_runs",
    "runs",
    "start",
    "stop",
    "tails",
    "watch",
]

"""Runs: start one, watch it, stop it, and read what its attempts did."""

from sagefit.runs.execution import Run, find_run, latest_runs, running_runs, start, stop
from sagefit.runs.expected import expected
from sagefit.runs.ledger import AttemptRecord, RunRecord, read_run
from sagefit.runs.logs import last_lines
from sagefit.runs.peaks import measured
from sagefit.runs.watch import watch

__all__ = [
    "AttemptRecord",
    "Run",
    "RunRecord",
    "expected",
    "find_run",
    "last_lines",
    "latest_runs",
    "measured",
    "read_run",
    "running_runs",
    "start",
    "stop",
    "watch",
]

"""Runs: start one, watch it, stop it, and read what its attempts did."""

from sagefit.running.execution import Run, find_run, latest_runs, running_runs, runs, start, stop
from sagefit.running.expected import expected
from sagefit.running.ledger import AttemptRecord, RunRecord, read_run
from sagefit.running.logs import last_lines
from sagefit.running.peaks import measured
from sagefit.running.watch import watch

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
    "runs",
    "start",
    "stop",
    "watch",
]

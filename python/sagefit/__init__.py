"""SageMaker training jobs that fit in memory, from Python.

The names in ``__all__`` are stable; the rest of the package may change with any version.

>>> import sagefit
>>> job = sagefit.load_job("bert-finetune")
>>> plan = sagefit.plan(job)
>>> [attempt.name for attempt in plan.attempts][:2]
['main', 'on-demand']
>>> plan.chosen.verdict, plan.chosen.instance_type
('FITS', 'ml.g6e.xlarge')

Start a job that was applied, with ``sagefit run`` or by a pipeline, and follow its run:

    run = sagefit.start(sagefit.load_job("quickstart"))
    while not (record := sagefit.read_run(run)).is_over:
        time.sleep(10)
    for attempt in record.attempts:
        print(attempt.name, attempt.instance_type, attempt.outcome, attempt.host_peak_gib)

Memory is in GiB, per GPU and per host; times are in seconds, money in USD. An error that the user can correct is a
`SagefitError`; its ``exit_code`` is the exit code of the command line. `start`, `stop`, `runs` and `read_run` call AWS
with the settings that boto3 finds in the environment; for the embedded cloud, set what ``sagefit cloud env`` prints.
All other functions call no service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sagefit.errors import SagefitError
from sagefit.version import __version__ as __version__

if TYPE_CHECKING:
    from sagefit.failures import Diagnosis, diagnose
    from sagefit.job import Job, load_job
    from sagefit.planning import JobPlan, plan
    from sagefit.reviewing import Review, review
    from sagefit.running import Run, RunRecord, read_run, runs, start, stop

__all__ = [
    "Diagnosis",
    "Job",
    "JobPlan",
    "Review",
    "Run",
    "RunRecord",
    "SagefitError",
    "diagnose",
    "load_job",
    "plan",
    "read_run",
    "review",
    "runs",
    "start",
    "stop",
]

if not TYPE_CHECKING:
    # Each is loaded when it is first used: the AWS client alone takes longer than most commands.
    _ROOMS = {
        "failures": ("Diagnosis", "diagnose"),
        "job": ("Job", "load_job"),
        "planning": ("JobPlan", "plan"),
        "reviewing": ("Review", "review"),
        "running": ("Run", "RunRecord", "read_run", "runs", "start", "stop"),
    }

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        for room, names in _ROOMS.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"{__name__}.{room}"), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted([*__all__, "__version__"])

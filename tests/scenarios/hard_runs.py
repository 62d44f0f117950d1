"""Runs of the job whose script really runs into trouble, and what can be seen of them."""

from __future__ import annotations

import time

import psutil

from sagefit.processes import running
from scenarios.conftest import Cloud
from waiting import wait_until

TROUBLES = ["host_memory", "disk", "shared_memory", "launcher_killed", "interrupted", "hangs"]
HANGS = TROUBLES.index("hangs")


def run_of(trouble: int, number: int = 0) -> str:
    return f"hard-00010{number}-{trouble:06d}"


def lines(cloud: Cloud, training_job: str) -> list[str]:
    """What the script printed, over all launches, without the launcher's own lines."""
    logs, group = cloud.client("logs"), "/aws/sagemaker/TrainingJobs"
    streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{training_job}/")["logStreams"]
    found = [
        event
        for stream in streams
        for event in logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True)[
            "events"
        ]
    ]
    return [event["message"] for event in found if event["message"].startswith(("starts", "step"))]


def process_of(training_job: str, command: str) -> psutil.Process | None:
    """The process of a training job whose command line has a word."""
    for process in running():
        try:
            if process.environ().get("TRAINING_JOB_NAME") == training_job and command in " ".join(process.cmdline()):
                return process
        except psutil.Error:
            continue
    return None


def hanging(hard: Cloud, number: int) -> str:
    """The name of a run whose first attempt hangs at step 3."""
    name = run_of(HANGS, number)
    hard.start("hard", name)
    wait_until(lambda: hard.training_jobs(name))
    wait_until(lambda: process_of(f"{name}-0", "container_init.py"))
    wait_until(lambda: "step 2 done" in _lines(hard, f"{name}-0"))
    time.sleep(1.5)  # for its checkpoint to be synchronised
    return name


def _lines(hard: Cloud, training_job: str) -> list[str]:
    try:
        return lines(hard, training_job)
    except hard.client("logs").exceptions.ResourceNotFoundException:
        return []

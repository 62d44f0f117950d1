"""Runs as they would be read, made up: each of its own kind."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from running.test_watch import PLATFORM
from sagefit.explaining import Explanation, Timeline
from sagefit.explaining.proposals import Proposal
from sagefit.explaining.tried import Remedy
from sagefit.failures import Excerpt, diagnose
from sagefit.reporting.gathering import Chapter, Story
from sagefit.running import AttemptRecord, Run, RunRecord
from sagefit.running.records import StepRecord

BEGAN = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
LATER = BEGAN + timedelta(minutes=5)
LACK = "RuntimeError: CUDA out of memory. Tried to allocate 1.16 GiB"
DIFF = "--- jobs/job.yaml\n+++ jobs/job.yaml\n@@ -1,2 +1,2 @@\n hyperparameters:\n-  batch: 16\n+  batch: 4"
CURVE = Timeline("GPU memory", "algo-1", 10.0, (2.0, 14.5, 21.9), 22.0, 12.0, gpu=True)


def attempt(index: int = 0, outcome: str = "completed", begin: float = 5, seconds: float = 60, **own: Any) -> Any:
    """An attempt that was created ``begin`` seconds after the run began and took ``seconds``."""
    given: dict[str, Any] = {
        "instance_type": "ml.g5.xlarge",
        "outcome": outcome,
        "training_job": f"job-261121-120000-{index}",
        "status": "Completed" if outcome == "completed" else "Failed",
        "billable_seconds": round(seconds),
        "usd": seconds * 1.41 / 3600,
        "created": BEGAN + timedelta(seconds=begin),
        "ended": BEGAN + timedelta(seconds=begin + seconds),
        "start_seconds": seconds / 4,
        "diagnosis": None if outcome in ("completed", "") else diagnose(LACK),
    }
    return AttemptRecord(index, f"try-{index}", **given | own)


def step(index: int = 0, **own: Any) -> StepRecord:
    """A processing step that completed."""
    given: dict[str, Any] = {"instance_type": "ml.m5.large", "processing_job": f"p{index}", "outcome": "completed"}
    times = {"created": BEGAN, "ended": BEGAN + timedelta(seconds=4), "billable_seconds": 4, "usd": 0.0001}
    return StepRecord(index, f"prepare-{index}", **given | times | own)


def told(failed: Any, **own: Any) -> Explanation:
    """What ended an attempt."""
    found = Explanation(
        f"attempt {failed.index} {failed.name}",
        failed,
        diagnose(LACK),
        Excerpt("algo-1", "rank 0", 8, ("step 7/500", LACK, "done"), 1),
        CURVE,
        "step 7 of 500",
        "checkpoint-4/state.json",
        "12 s of training after its last checkpoint, 0.0047 USD",
        (Remedy(Proposal("Micro-batch 4 instead of 16"), "batch: 4", DIFF, True, "fits: at most 18 of 22 GiB"),),
    )
    return replace(found, **own)


def story(*jobs: Any, status: str = "SUCCEEDED", name: str = "job-261121-120000", read: Any = LATER) -> Story:
    """A run of ``jobs``; those with a diagnosis are explained, and all attempts but searches have a curve."""
    steps = [each for each in jobs if isinstance(each, StepRecord)]
    attempts = [each for each in jobs if isinstance(each, AttemptRecord)]
    ends = [each.ended for each in jobs if each.ended]
    record = RunRecord(
        Run(name, "job", PLATFORM),
        status,
        BEGAN,
        max(ends, default=BEGAN) + timedelta(seconds=2) if status != "RUNNING" else None,
        attempts,
        steps=steps,
        read=read,
    )
    chapters = tuple(
        Chapter(each, told(each) if each.diagnosis else None, (CURVE,) if each.created and each in attempts else ())
        for each in jobs
    )
    return Story(record, chapters)

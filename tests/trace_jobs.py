"""Job files with ``memory.trace``, traced by the Python that runs the tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from job_files import write_job
from sagefit.job import load_job
from sagefit.job.model import Job


def traced_job(folder: Path, **changes: Any) -> Job:
    """A job in ``folder`` with ``changes`` of its fields."""
    fields = {
        "hyperparameters": {"per_device_train_batch_size": 8, "width": 3},
        "memory": {"trace": {"function": "train.py:build", "python": sys.executable}},
    }
    return load_job(str(write_job(folder, fields | changes)))

"""What is asked of SageMaker's lists, so that they look at the jobs of a run's time and not at all of the account.

A list takes a page of jobs and filters it by name and status then. Without times, each read of a run would look at
every job that the account ever had.
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListTrainingJobs.html
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

MARGIN = timedelta(minutes=5)
"""How far the clocks of two services, or a create that was under way when a run was stopped, may be off."""
PAGE = 100
"""Jobs of a page: the most that AWS gives."""


def created(began: datetime, ended: datetime | None = None) -> dict[str, Any]:
    """The parameters of a list of jobs that an execution created between its start and its end; None: still running.

    Pages are as large as AWS gives them.
    """
    last = {"CreationTimeBefore": ended + MARGIN} if ended else {}
    return {"CreationTimeAfter": began - MARGIN, **last, "PaginationConfig": {"PageSize": PAGE}}

"""Whether a schedule may start a run while the one before is still in progress: nothing waits for that one to end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sagefit.job import Job
from sagefit.job.problem import Problem
from sagefit.job.schedule_times import shortest_gap
from sagefit.job.values import duration
from sagefit.planning.cost import reachable
from sagefit.planning.planned import PlannedAttempt


def overlap_remarks(job: Job, attempts: Sequence[PlannedAttempt], steps: Sequence[PlannedAttempt]) -> Iterator[Problem]:
    """A run that may take longer than the shortest time between two starts of its schedule."""
    if not job.schedule or not attempts:
        return
    expression = job.schedule if isinstance(job.schedule, str) else job.schedule.expression
    gap, longest = shortest_gap(expression), longest_seconds(attempts, steps)
    if gap is None or longest <= gap:
        return
    yield Problem(
        ("schedule",),
        f"{expression} starts a run every {duration(gap)} at the closest, and by its time limits a run may take "
        f"{duration(longest)}: the next one then starts beside it, and both are paid for",
        "lower resources.max_runtime, or start less often; nothing waits for the run before",
    )


def longest_seconds(attempts: Sequence[PlannedAttempt], steps: Sequence[PlannedAttempt]) -> int:
    """The longest that the steps and the slowest path of attempts take, each to its limit. Without repeats."""
    rest: dict[str, int] = {}
    reached = reachable(attempts)
    for attempt in reversed(reached):
        after = (rest[name] for name in attempt.next.values())
        rest[attempt.name] = attempt.longest_seconds + max(after, default=0)
    return rest[reached[0].name] + sum(step.longest_seconds for step in steps)

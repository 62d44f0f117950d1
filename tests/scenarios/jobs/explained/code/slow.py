"""Longer than the job may run."""

from common import steps  # type: ignore[import-not-found]

for _ in steps(1000, seconds=0.5):
    pass

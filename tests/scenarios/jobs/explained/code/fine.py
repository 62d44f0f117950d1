"""What would be well, if there were instances."""

from common import steps  # type: ignore[import-not-found]

for _ in steps(4):
    pass

"""What is tried: which signal, at which moment, with which backend; and which of it in how many tests."""

from __future__ import annotations

from interruptions.ground import LOCAL, S3

#: What is done, and to whom.
STRIKES = ("INT", "TERM", "HUP", "KILL", "KILL of Terraform", "KILL of the cloud")
#: When.
MOMENTS = ("init", "plan", "before the first create", "after one", "after many", "as the state is written")
BACKENDS = (LOCAL, S3)
#: Each strike and each moment twice, once with each backend: what every change must pass. All others are for `full`.
USUAL = {
    ("INT", "after one", LOCAL),
    ("INT", "init", S3),
    ("TERM", "before the first create", LOCAL),
    ("TERM", "as the state is written", S3),
    ("HUP", "plan", LOCAL),
    ("HUP", "after many", S3),
    ("KILL", "as the state is written", LOCAL),
    ("KILL", "before the first create", S3),
    ("KILL of Terraform", "init", LOCAL),
    ("KILL of Terraform", "after one", S3),
    ("KILL of the cloud", "after many", LOCAL),
    ("KILL of the cloud", "plan", S3),
}
CODES = {"INT": 130, "TERM": 143, "HUP": 129, "KILL": -9, "KILL of Terraform": 1, "KILL of the cloud": 1}


def cells() -> list[tuple[str, str, str]]:
    """All of it."""
    return [(strike, moment, backend) for strike in STRIKES for moment in MOMENTS for backend in BACKENDS]

"""What the embedded cloud does otherwise than AWS in a run, in a line for the screen."""

from __future__ import annotations

from fractions import Fraction

from sagefit.cloud import control, images


def of_a_run(image: str | None, version: str | None = None) -> str | None:
    """What to say of a run of a job whose image has this name, and this version where a table has it.

    None where no embedded cloud runs.
    """
    status = control.status()
    if status is None:
        return None
    told = []
    part = Fraction(status.memory_scale).limit_denominator(1000)
    if part != 1:
        told.append(f"an instance has {part} of its memory and volume")
    if stands_in := images.stand_in(image or ""):
        told.append(f"{stands_in} stands in for {' '.join(filter(None, (image, version)))}")
    wait = status.start_seconds
    told.append(f"instances start after {wait:g} s" if wait else "instances start at once")
    return f"embedded cloud: {'; '.join(told)}"

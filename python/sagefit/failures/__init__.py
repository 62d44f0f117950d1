"""What ended a training job: a class, the evidence for it, and what to change.

The patterns are rows of ``modules/training-job/failures.json``, the same that the state machine and the launcher use.
"""

from sagefit.failures.diagnosis import CLASSES, Diagnosis, Rejected
from sagefit.failures.excerpt import END, Excerpt, around, ending
from sagefit.failures.remedies import OF_A_STEP, OF_GROWTH, REMEDIES, REMEDIES_OF_PATTERN
from sagefit.failures.weighing import FULL, ROOMY, TAIL_BYTES, decided, diagnose, read_log, read_stream, table

__all__ = [
    "CLASSES",
    "END",
    "FULL",
    "OF_A_STEP",
    "OF_GROWTH",
    "REMEDIES",
    "REMEDIES_OF_PATTERN",
    "ROOMY",
    "TAIL_BYTES",
    "Diagnosis",
    "Excerpt",
    "Rejected",
    "around",
    "decided",
    "diagnose",
    "ending",
    "read_log",
    "read_stream",
    "table",
]

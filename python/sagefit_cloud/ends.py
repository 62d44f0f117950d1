"""How a job can end before its time, and what its ``FailureReason`` says then."""

from __future__ import annotations

from sagefit.cloud.faults import Outcome
from sagefit_cloud.container import Container

INTERNAL = "InternalServerError: We encountered an internal error. Please try again."
# AWS's own words for a host that ran out of memory.
_OUT_OF_MEMORY = (
    "ClientError: Please use an instance type with more memory, "
    "or reduce the size of job data processed on an instance."
)
_DISK_FULL = "AlgorithmError: [Errno 28] No space left on device: more than the volume's {} bytes, exit code: 137"


class JobFailedError(Exception):
    """The job has failed; the text is its ``FailureReason``."""


class EndedError(Exception):
    """The job ended early; carries its status and secondary status."""

    def __init__(self, status: str, secondary: str, *, keep_model: bool = False) -> None:
        super().__init__(status, secondary)
        self.status, self.secondary, self.keep_model = status, secondary, keep_model


class SpotInterruptedError(Exception):
    """Spot capacity was taken away."""


def stands_in(fault: Outcome | None) -> bool:
    """Whether a fault stands in for the work of a job. One that is a bad end is raised.

    Raises JobFailedError or EndedError.
    """
    if fault and fault.status == "Failed":
        raise JobFailedError(fault.failure_reason)
    if fault and fault.stopped:
        # No document has the secondary status of a job that waited for instances for too long.
        raise EndedError("Stopped", "Stopped" if fault.stopped == "MaxPendingTimeExceeded" else fault.stopped)
    return bool(fault and fault.status == "Completed")


def reason(container: Container, code: int | None, *, built_in: bool) -> str:
    """What ``FailureReason`` says about a host that ended with an exit code other than 0.

    AWS tells a user's mistake apart where the algorithm is its own.
    """
    if container.failure:
        judged = built_in and container.failure.startswith("ClientError: ")
        return f"{'' if judged else 'AlgorithmError: '}{container.failure}, exit code: {code}"
    if container.memory_kills:
        return _OUT_OF_MEMORY
    return f"AlgorithmError: , exit code: {code}"


def disk_full(container: Container) -> JobFailedError:
    """The end of a job whose files outgrew a host's volume."""
    return JobFailedError(_DISK_FULL.format(container.disk_limit))

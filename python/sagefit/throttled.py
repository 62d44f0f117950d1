"""Answers of AWS that ask for patience: the account asked too often, and the same call may be granted later."""

from __future__ import annotations

from sagefit.errors import FAILED, SagefitError

THROTTLED = frozenset(
    {
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes of such answers, as botocore's standard mode of retries knows them."""
LATER = "run it again in a minute"


def throttled(error: BaseException, what: str = "") -> SagefitError | None:
    """What to say of an answer that throttles, ``what`` being what was to be done; None for every other error.

    botocore has tried several times before it says so. The call that was refused changed nothing.
    """
    answer = getattr(error, "response", None)
    code = answer.get("Error", {}).get("Code", "") if isinstance(answer, dict) else ""
    if code not in THROTTLED:
        return None
    call = getattr(error, "operation_name", "the call")
    said = f"AWS throttles the account: it refused {call}, each time it was tried ({code})"
    return SagefitError(f"{what}: {said}" if what else said, hint=LATER, exit_code=FAILED)

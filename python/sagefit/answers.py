"""Answers of AWS that are not about what was asked: the account asks too often, or this machine's clock is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

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
"""Codes of answers that throttle, as botocore's standard mode of retries knows them."""
LATER = "run it again in a minute"

SKEWED = frozenset(
    {
        "AuthFailure",
        "InvalidSignatureException",
        "RequestExpired",
        "RequestInTheFuture",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
"""Codes of answers to a request that was signed too long ago, or in the future, as AWS's SDKs know them (the list in
the Smithy SDK for JavaScript, ``service-error-classification``); some of them are said of wrong keys too."""
_SKEW_SECONDS = 240
"""From which difference of the clocks on it is they that are at fault. AWS's SDKs correct their time from there; AWS
takes a request within five minutes of its time, S3 within fifteen (IAM User Guide, "Signature Version 4")."""


def understood(error: BaseException, what: str = "") -> SagefitError | None:
    """What to say of an answer that is not about the request, ``what`` being what was to be done; else None.

    botocore has tried a throttled call several times before it says so. A call that was refused changed nothing.
    """
    answer = getattr(error, "response", None)
    code = answer.get("Error", {}).get("Code", "") if isinstance(answer, dict) else ""
    call = getattr(error, "operation_name", "the call")
    if code in THROTTLED:
        said, hint = f"AWS throttles the account: it refused {call}, each time it was tried ({code})", LATER
    elif code in SKEWED and (ahead := _ahead(answer)):
        said = f"the clock of this machine is {ahead} AWS's, so AWS refused {call} ({code})"
        hint = "set the clock, on Linux with `timedatectl set-ntp true`, and run it again"
    else:
        return None
    return SagefitError(f"{what}: {said}" if what else said, hint=hint, exit_code=FAILED)


def answered_at(answer: Mapping[str, Any]) -> datetime | None:
    """When AWS answered, by its own clock; None where the answer does not say."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return parsedate_to_datetime(headers.get("date", "")).astimezone(timezone.utc)
    except (TypeError, ValueError):
        return None


def _ahead(answer: Any) -> str:
    """How far this machine's clock is from AWS's, in words; empty where that is no reason for a refusal."""
    theirs = answered_at(answer)
    seconds = (datetime.now(timezone.utc) - theirs).total_seconds() if theirs else 0.0
    if abs(seconds) < _SKEW_SECONDS:
        return ""
    return f"{abs(seconds) / 60:.0f} minutes {'ahead of' if seconds > 0 else 'behind'}"

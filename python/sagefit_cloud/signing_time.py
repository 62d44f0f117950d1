"""Requests whose signature is too old or of the future, as those of a machine whose clock is wrong.

AWS takes a request within five minutes of its time ("Signature Version 4", IAM User Guide), S3 within fifteen
(``MaxAllowedSkewMilliseconds`` of its answer). A faults file sets the clock of whoever asks wrong with ``skew``.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

from sagefit.cloud.faults import Faults
from sagefit_cloud.clients import INTERNAL_AGENT
from sagefit_cloud.rules import Said
from sagefit_cloud.wire import boto_name, speaks_json

MOST = timedelta(minutes=5)
MOST_OF_S3 = timedelta(minutes=15)
_FORM = "%Y%m%dT%H%M%SZ"


def skew_of(faults: Faults, environ: dict[str, Any], service: str, action: str) -> float:
    """By how many seconds the clock of whoever asks is ahead; what AWS does itself is on time."""
    if INTERNAL_AGENT in environ.get("HTTP_USER_AGENT", "") or service == "moto_api":
        return 0.0
    return faults.skew(f"{boto_name(service)}:{action}")


def date(skew: float) -> tuple[str, str]:
    """The header that says what time it is on AWS."""
    return "Date", format_datetime(_now(skew), usegmt=True)


def refusal(environ: dict[str, Any], service: str, skew: float) -> Said | None:
    """What is answered to a request that was signed at another time; None where it is near enough, or says none."""
    try:
        signed = datetime.strptime(environ.get("HTTP_X_AMZ_DATE", ""), _FORM).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    now, name = _now(skew), boto_name(service)
    if abs(signed - now) <= (MOST_OF_S3 if name == "s3" else MOST):
        return None
    if name == "s3":
        words = "The difference between the request time and the current time is too large."
        return Said(words, "RequestTimeTooSkewed", 403)
    if name == "ec2":
        return Said("AWS was not able to validate the provided access credentials", "AuthFailure", 403)
    at, here = f"{signed:{_FORM}}", f"{now:{_FORM}}"
    if signed < now:
        words = f"Signature expired: {at} is now earlier than {now - MOST:{_FORM}} ({here} - 5 min.)"
    else:
        words = f"Signature not yet current: {at} is still later than {now + MOST:{_FORM}} ({here} + 5 min.)"
    if speaks_json(environ, service):
        return Said(words, "InvalidSignatureException", 400)
    return Said(words, "SignatureDoesNotMatch", 403)


def _now(skew: float) -> datetime:
    return datetime.now(timezone.utc) - timedelta(seconds=skew)

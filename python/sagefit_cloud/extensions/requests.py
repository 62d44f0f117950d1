"""What all requests to SageMaker have in common: faults and roles, and lists that come in pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from moto.core.exceptions import JsonRESTError
from moto.iam.models import iam_backends
from moto.sagemaker.exceptions import SagemakerClientError
from moto.sagemaker.responses import SageMakerResponse

from sagefit.cloud.faults import Faults, Outcome
from sagefit_cloud.executor import Executor

_SERVER_ERRORS = {"InternalFailure": 500, "InternalServerError": 500, "ServiceUnavailable": 503}


def invalid(message: str) -> SagemakerClientError:
    """The refusal of a request."""
    return SagemakerClientError("ValidationException", message)


def api_error(outcome: Outcome) -> Exception:
    """The error of the API that a fault asks for."""
    name = str(outcome.api_error)
    error = JsonRESTError(name, outcome.message or f"{name} from the faults file")
    error.code = _SERVER_ERRORS.get(name, 400)
    return error


class Requests(SageMakerResponse):
    """Reads requests; the extensions of SageMaker are built on it."""

    #: What the cloud gives to all requests when it starts.
    executor: Executor
    faults: Faults

    def request(self) -> dict[str, Any]:
        """The request; the gateway lets in what the API takes."""
        request: dict[str, Any] = json.loads(self.body or "{}")
        return request

    def fault_of(self, job: str, instance_type: str) -> Outcome | None:
        """What the faults file wants of this creation of a job; raises what it wants refused."""
        outcome = self.faults.next(job, instance_type)
        if outcome and outcome.throttle:
            raise SagemakerClientError("ThrottlingException", "Rate exceeded")
        if outcome and outcome.api_error and not outcome.created:
            raise api_error(outcome)
        return outcome

    def check_role(self, arn: str) -> None:
        """SageMaker must be able to assume the role."""
        roles = iam_backends[self.current_account][self.partition].roles.values()
        trust = next((str(role.assume_role_policy_document) for role in roles if role.arn == arn), "")
        if "sagemaker.amazonaws.com" not in trust:
            raise invalid(
                f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
                "'sagemaker.amazonaws.com' to assume the role."
            )


def page(
    lines: list[dict[str, Any]],
    request: Mapping[str, Any],
    field: str,
    matches: Callable[[dict[str, Any]], bool],
) -> dict[str, Any]:
    """One page of a sorted list: of the next ``MaxResults`` lines after ``NextToken`` those that match.

    AWS filters by name and status what a page has taken, so a page can be short or empty and have a ``NextToken``. It
    documents this for StatusEquals of ListTrainingJobs; people met it with NameContains (boto/boto3, issue 3347). The
    other lists of jobs are taken to do the same.
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ListTrainingJobs.html
    """
    token = str(request.get("NextToken") or "0")
    if not token.isdigit():
        raise invalid("Invalid pagination token.")
    start, size = int(token), int(request.get("MaxResults") or 10)
    answer: dict[str, Any] = {field: [line for line in lines[start : start + size] if matches(line)]}
    if start + size < len(lines):
        answer["NextToken"] = str(start + size)
    return answer


def in_time(line: dict[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether a job's times are within those that a list is asked for."""
    return all(
        _time(request.get(f"{name}After"), default=0) <= line[name].timestamp()
        and line[name].timestamp() <= _time(request.get(f"{name}Before"), default=float("inf"))
        for name in ("CreationTime", "LastModifiedTime")
    )


def _time(value: Any, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, str):
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    return float(value)

"""The command line with a record of what it asks AWS: each call's parameters, from which the resource follows.

As a program it runs ``sagefit`` and appends its calls to the file that ``SAGEFIT_TEST_CALLS`` names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3

from sagefit.iam.evaluate import Call

VARIABLE = "SAGEFIT_TEST_CALLS"
# IAM's name for a service where the API has another.
_IAM_NAMES = {"api.sagemaker": "sagemaker"}


def calls(path: Path, document: dict[str, Any]) -> list[Call]:
    """The recorded calls as IAM sees them, in the account and Region of a platform."""
    return [_call(document, **json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _call(document: dict[str, Any], service: str, action: str, parameters: dict[str, Any]) -> Call:
    name = _IAM_NAMES.get(service, service)
    part = f"{document['region']}:{document['account_id']}"
    if name == "s3" and action == "ListObjectsV2":
        return Call("s3:ListBucket", f"arn:aws:s3:::{parameters['Bucket']}", {"s3:prefix": parameters["Prefix"]})
    if name == "s3":
        return Call(f"s3:{action}", f"arn:aws:s3:::{parameters['Bucket']}/{parameters['Key']}")
    resources: dict[str, Callable[[Any], str]] = {
        "Name": lambda value: f"arn:aws:ssm:{part}:parameter{value}",
        "stateMachineArn": str,
        "executionArn": str,
        "TrainingJobName": lambda value: f"arn:aws:sagemaker:{part}:training-job/{value}",
        "HyperParameterTuningJobName": lambda value: f"arn:aws:sagemaker:{part}:hyper-parameter-tuning-job/{value}",
        "logGroupName": lambda value: f"arn:aws:logs:{part}:log-group:{value}:log-stream:",
    }
    named = [resources[key](value) for key, value in parameters.items() if key in resources]
    return Call(f"{name}:{action}", named[0] if named else "*")


def _record(params: dict[str, Any], model: Any, **_: Any) -> None:
    line = {"service": model.service_model.endpoint_prefix, "action": model.name, "parameters": params}
    with Path(os.environ[VARIABLE]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, default=str) + "\n")


if __name__ == "__main__":
    from sagefit.cli import main

    boto3.setup_default_session()
    session: Any = boto3.DEFAULT_SESSION
    session.events.register("before-parameter-build", _record)
    main()

"""boto3 clients for runs: patient with throttling, quick to notice a lost connection."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_stepfunctions import SFNClient

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=20)

CONNECTION_LOST = (EndpointConnectionError, ConnectionClosedError, ConnectTimeoutError, ReadTimeoutError)


@cache
def step_functions() -> SFNClient:
    """The Step Functions client of the environment."""
    return boto3.client("stepfunctions", config=_CONFIG)


@cache
def sagemaker() -> SageMakerClient:
    """The SageMaker client of the environment."""
    return boto3.client("sagemaker", config=_CONFIG)


@cache
def logs() -> CloudWatchLogsClient:
    """The CloudWatch Logs client of the environment."""
    return boto3.client("logs", config=_CONFIG)


@cache
def cloudwatch() -> CloudWatchClient:
    """The CloudWatch client of the environment."""
    return boto3.client("cloudwatch", config=_CONFIG)


@cache
def s3() -> S3Client:
    """The S3 client of the environment."""
    return boto3.client("s3", config=_CONFIG)

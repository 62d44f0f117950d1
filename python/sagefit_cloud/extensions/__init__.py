"""What moto lacks, one small module a service. Each replaces the service's response class by a subclass of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from moto.core import utils

from sagefit.cloud.faults import Faults
from sagefit_cloud.executor import Executor
from sagefit_cloud.extensions import cloudwatch, ecr, iam, s3, sagemaker, servicequotas, sns, stepfunctions, sts


def install(executor: Executor, faults: Faults, contents: Path) -> None:
    """Put all extensions in place; to be called before the first request. ``contents``: a folder for S3's objects."""
    models: Any = utils
    models.create_loader = cache(models.create_loader)  # it would look for all services anew for each model
    stepfunctions.install()
    cloudwatch.install()
    ecr.install()
    iam.install()
    sns.install()
    sts.install()
    s3.install(contents)
    servicequotas.install()
    sagemaker.install(executor, faults)

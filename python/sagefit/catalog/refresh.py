"""Asking AWS what instances have and what training on them costs in one region.

Sources: EC2 DescribeInstanceTypes and the Price List API's GetProducts, service code AmazonSageMaker. Everything is
asked before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sagefit.answers import understood
from sagefit.catalog.instance_table import instances
from sagefit.catalog.store import Snapshot, Specs
from sagefit.errors import FAILED, SagefitError

if TYPE_CHECKING:
    import boto3

SOURCE = "AWS Price List API, component Training"
TRIES = 3
PRICING_REGION = "us-east-1"
"""The Price List API answers in us-east-1, eu-central-1 and ap-south-1, for all regions."""

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_NOT_LOGGED_IN = {
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_PACKAGED = "the packaged figures stay in use"


def ask(session: boto3.Session, region: str, progress: Callable[[str], None] = lambda _: None) -> Snapshot:
    """What AWS says today of ``region``. ``progress`` is told what is asked next.

    Raises SagefitError (exit code 1) without credentials, permission or network, when throttled, and when the price
    list names no training price of the region; (exit code 2) for what is no region, or one of another partition.
    """
    _check(session, region)
    progress(f"EC2: instance types of {region}")
    with _explained("ec2:DescribeInstanceTypes", region):
        specs = dict(_specs(_client(session, "ec2", region)))
    progress(f"price list: training in {region}")
    with _explained("pricing:GetProducts", PRICING_REGION):
        prices = _prices(_client(session, "pricing", PRICING_REGION), region)
    if not prices:
        raise SagefitError(
            f"the price list names no training price in {region}",
            hint=f"check that SageMaker trains in {region}; {_PACKAGED}",
            exit_code=FAILED,
        )
    return Snapshot(region, datetime.now(timezone.utc).date().isoformat(), SOURCE, prices, specs)


def _check(session: boto3.Session, region: str) -> None:
    from botocore.exceptions import UnknownRegionError

    try:
        partition = session.get_partition_for_region(region)
    except UnknownRegionError as error:
        raise SagefitError(
            f"--region {region}: not the name of a region", hint="write one such as eu-central-1"
        ) from error
    if partition != "aws":
        raise SagefitError(
            f"--region {region}: the price list has the regions of the partition aws only",
            hint="write the attempts with their instance types; prices stay unknown there",
        )


def _client(session: boto3.Session, service: str, region: str) -> Any:
    from botocore.config import Config

    config = Config(retries={"mode": "standard", "max_attempts": TRIES}, connect_timeout=10, read_timeout=30)
    return session.client(service, region_name=region, config=config)  # type: ignore[call-overload]


def _specs(ec2: Any) -> Iterator[tuple[str, Specs]]:
    for page in ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 100}):
        for row in page["InstanceTypes"]:
            ml_type = f"ml.{row['InstanceType']}"
            if ml_type in instances():
                yield ml_type, specs_of(row)


def specs_of(row: dict[str, Any]) -> Specs:
    """One element of ``InstanceTypes`` in the answer of DescribeInstanceTypes."""
    return Specs(
        vcpus=row["VCpuInfo"]["DefaultVCpus"],
        memory_gib=row["MemoryInfo"]["SizeInMiB"] / 1024,
        nvme_gb=(row.get("InstanceStorageInfo") or {}).get("TotalSizeInGB", 0),
        efa=bool(row.get("NetworkInfo", {}).get("EfaSupported", False)),
    )


def _prices(pricing: Any, region: str) -> dict[str, float]:
    """Where a type has several rows, the dearest counts: a bound on the price must hold."""
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode="AmazonSageMaker",
        Filters=[
            {"Type": "TERM_MATCH", "Field": "regionCode", "Value": region},
            {"Type": "TERM_MATCH", "Field": "component", "Value": "Training"},
        ],
    )
    prices: dict[str, float] = {}
    for page in pages:
        for text in page["PriceList"]:
            for ml_type, usd in training_prices(json.loads(text), region):
                prices[ml_type] = max(usd, prices.get(ml_type, 0.0))
    return prices


def training_prices(product: dict[str, Any], region: str) -> Iterator[tuple[str, float]]:
    """The on-demand USD per hour in one row of the price list, when it is a training type of ``region``.

    The type is in ``instanceName``; ``instanceType`` may read ``ml.m5.xlarge-Training`` or ``NA``. Rows of other
    components, of other units (storage is in GB-Mo) and of 0 USD are no price of an instance.
    """
    attributes = product["product"]["attributes"]
    ml_type = attributes.get("instanceName", "")
    here = (attributes.get("regionCode"), attributes.get("component")) == (region, "Training")
    if not here or ml_type not in instances():
        return
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            usd = float(dimension["pricePerUnit"].get("USD", 0))
            if usd > 0 and dimension["unit"] in ("Hrs", "Hours"):
                yield ml_type, usd


@contextmanager
def _explained(action: str, region: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, NoCredentialsError

    try:
        yield
    except NoCredentialsError as error:
        raise _failed(f"{action}: no AWS credentials", "log in, or set AWS_PROFILE") from error
    except ClientError as error:
        if known := understood(error, action):
            raise _failed(known.message, str(known.hint)) from error
        raise _refused(action, error.response["Error"].get("Code", ""), str(error)) from error
    except (ConnectionError, HTTPClientError) as error:
        knob = "check the network, the proxy variables and the name of the region"
        raise _failed(f"{action}: AWS in {region} does not answer: {error}", knob) from error
    except BotoCoreError as error:
        raise _failed(f"{action}: {error}", "log in, and check the AWS configuration of this shell") from error
    except (KeyError, TypeError, ValueError) as error:
        raise _failed(
            f"{action}: the answer has another shape than documented ({error!r})", "update Sagefit"
        ) from error


def _refused(action: str, code: str, message: str) -> SagefitError:
    if code in _DENIED:
        return _failed(f"{action}: this AWS identity may not do that", f"allow the IAM action {action}")
    if code in _NOT_LOGGED_IN:
        return _failed(f"{action}: AWS does not accept the credentials ({code})", "log in again")
    return _failed(f"{action}: {message}", "try again, or see what AWS says of this error")


def _failed(message: str, knob: str) -> SagefitError:
    return SagefitError(" ".join(message.split()), hint=f"{knob}; {_PACKAGED}", exit_code=FAILED)

"""How long the logs of containers are kept: in two log groups that SageMaker makes, for the whole account and region.

A group keeps what is in it for ever until it gets a retention (CloudWatch Logs user guide, Change log data retention).
No platform owns these two, so no apply changes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sagefit.doctor.asking import client
from sagefit.doctor.finding import Finding
from sagefit.platform import Platform

_CHECK = "logs"
_PREFIX = "/aws/sagemaker/"
_GROUPS = ("/aws/sagemaker/ProcessingJobs", "/aws/sagemaker/TrainingJobs")


def check_logs(platform: Platform) -> Iterator[Finding]:
    """One line: which of the two groups keep logs for ever, or without a key. That is no fault: nothing fails by it."""
    pages = client("logs").get_paginator("describe_log_groups").paginate(logGroupNamePrefix=_PREFIX)
    found = {each["logGroupName"]: each for page in pages for each in page["logGroups"]}
    there = [name for name in _GROUPS if name in found]
    endless = [name for name in there if not found[name].get("retentionInDays")]
    plain = [name for name in there if platform.kms_key_arn and not found[name].get("kmsKeyId")]
    told = []
    if endless:
        told.append(
            f"what containers log is kept for ever in {' and '.join(endless)}; to change it for everybody's jobs: "
            f"aws logs put-retention-policy --log-group-name {endless[-1]} "
            f"--retention-in-days {platform.log_retention_days}"
        )
    if plain:
        told.append(f"no key of yours encrypts {' and '.join(plain)} (docs/platform.md)")
    if not there:
        told.append("SageMaker makes the groups of what containers log with the first job, and keeps logs for ever")
    yield Finding(_CHECK, "ok", "; ".join(told) or f"logs of containers expire: {_days(found, there)}")


def _days(found: dict[str, dict[str, int]], there: list[str]) -> str:
    return ", ".join(f"{name} after {found[name]['retentionInDays']} days" for name in there)

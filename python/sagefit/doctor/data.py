"""Whether what a job reads from S3 is there, in the region that trains, and whether its keys can be used.

SageMaker trains with data of its own region only:
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_S3DataSource.html
"""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from sagefit.doctor.asking import client, code_of
from sagefit.doctor.finding import Finding
from sagefit.job import Job
from sagefit.platform import Platform

_MISSING = ("404", "NoSuchBucket", "NotFound")
_ABSENT = "not there"


def check_inputs(job: Job, region: str) -> Iterator[Finding]:
    """A finding for each input in S3 that is not there, or one line when all are."""
    inputs = dict(_inputs(job))
    wrong = False
    for what, uri in inputs.items():
        for told, fix in _place_problems(uri, region):
            wrong = True
            yield Finding("inputs", "fault", f"{what}: {told}", fix)
    if inputs and not wrong:
        yield Finding("inputs", "ok", ", ".join(inputs.values()))


def _inputs(job: Job) -> Iterator[tuple[str, str]]:
    for name, channel in job.channels.items():
        if channel.uri and channel.uri.startswith("s3://"):
            yield f"inputs.{name}", channel.uri
    for step in job.processing:
        for name, source in step.sources.items():
            if source.uri and source.uri.startswith("s3://"):
                yield f"input {name} of processing {step.name}", source.uri


def _place_problems(uri: str, region: str) -> Iterator[tuple[str, str]]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    s3 = client("s3", region)
    try:
        lies = s3.head_bucket(Bucket=bucket).get("BucketRegion", region)
    except ClientError as error:
        if code_of(error) in _MISSING:
            yield f"there is no bucket {bucket}", "correct the uri, or make the bucket"
            return
        raise
    if lies != region:
        yield f"{bucket} is in {lies}, and the job trains in {region}", f"copy the data to a bucket in {region}"
    elif not s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1).get("KeyCount"):
        yield f"nothing lies at {uri}", f"aws s3 ls {uri} shows what is there; upload the data, or correct the uri"


def check_keys(job: Job | None, platform: Platform | None) -> Iterator[Finding]:
    """A finding for each KMS key that cannot be used, or one line when all can."""
    own = job.resources if job else None
    keys = [platform and platform.kms_key_arn, own and own.volume_kms_key_arn, own and own.output_kms_key_arn]
    named = list(dict.fromkeys(key for key in keys if key))
    wrong = False
    for key in named:
        try:
            state = client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
        except ClientError as error:
            if code_of(error) != "NotFoundException":
                raise
            state = _ABSENT
        if state != "Enabled":
            wrong = True
            fix = f"aws kms enable-key --key-id {key}"
            if state == "PendingDeletion":
                fix = f"aws kms cancel-key-deletion --key-id {key}, and then {fix}"
            yield Finding("key", "fault", f"{key} is {state}", "correct its ARN" if state == _ABSENT else fix)
    if named and not wrong:
        yield Finding("key", "ok", f"{', '.join(named)} can be used")

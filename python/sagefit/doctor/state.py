"""Whether Terraform's state can be read and written where a backend says that it lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from botocore.exceptions import ClientError

from sagefit.doctor.asking import client, code_of
from sagefit.doctor.finding import Finding
from sagefit.paths import JOB_ROOT, ROOT, display
from sagefit.target import Target
from sagefit.terraform.backend import MISSING, OVERRIDE, read_backend

_CHECK = "state"


def check_state(target: Target) -> Iterator[Finding]:
    """A finding for each root whose backend is not to be had, or one line."""
    overrides = {root: root / OVERRIDE for root in (ROOT, JOB_ROOT)}
    present = [path for path in overrides.values() if path.exists()]
    if len(present) == 1:
        (path,) = (path for path in overrides.values() if not path.exists())
        told = f"{display(present[0])} keeps states in a backend, and {display(path)} is missing"
        yield Finding(_CHECK, "fault", f"{told}: the other states are files of this machine", "commit both files")
    if not present:
        yield Finding(_CHECK, "ok", f"files of this machine, under {display(target.folder / 'states')}")
    elif target.is_local:
        yield Finding(_CHECK, "ok", "in a bucket that the embedded cloud has for it")
    else:
        read = {path: read_backend(path.read_text(encoding="utf-8")) for path in present}
        if len({repr(backend) for backend in read.values()}) == 1:
            read = {present[0]: read[present[0]]}
        for path, (kind, settings) in read.items():
            yield _backend(" and ".join(map(display, present if len(read) == 1 else [path])), kind, settings)


def _backend(where: str, kind: str, settings: Mapping[str, str]) -> Finding:
    bucket = settings.get("bucket")
    if kind != "s3" or bucket is None:
        told = f"not asked: {where} names no bucket in S3, and nothing else can be asked for"
        return Finding(_CHECK, "unknown", told, "look by hand whether the backend answers")
    try:
        client("s3", settings.get("region")).head_bucket(Bucket=bucket)
    except ClientError as error:
        if code_of(error) in MISSING:
            return Finding(_CHECK, "fault", f"there is no bucket {bucket} ({where})", "make it, or correct its name")
        if code_of(error) == "403":
            fix = "ask its owner for s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject on sagefit/*"
            return Finding(_CHECK, "fault", f"you may not look into {bucket} ({where})", fix)
        raise
    if settings.get("use_lockfile") != "true" and "dynamodb_table" not in settings:
        told = f"nothing keeps two applies of one state apart ({where})"
        return Finding(_CHECK, "fault", told, "set use_lockfile = true in the backend")
    return Finding(_CHECK, "ok", f"s3://{bucket} can be reached ({where})")

"""Where states lie that are no files of this machine: the backend that a root's override names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError

OVERRIDE = "backend_override.tf"
EMBEDDED_BUCKET = "sagefit-terraform-state"  # on the embedded cloud, in place of the team's own
MISSING = ("404", "NoSuchBucket", "NotFound")


def read_backend(text: str) -> tuple[str, Mapping[str, str]]:
    """The kind of the backend in a root's override, and its settings that are written out; "" where there is none.

    What a setting holds in braces counts as a setting of its own: ``assume_role = { role_arn = "..." }``.
    """
    plain = re.sub(r"(?m)^\s*(#|//).*$", "", text)
    found = re.search(r'\bbackend\s+"(\w+)"\s*{((?:[^{}]|{[^{}]*})*)}', plain)
    if not found:
        return "", {}
    written = re.findall(r'(?m)(?:^|[{,])\s*(\w+)\s*=\s*(?:"([^"$]*)"|(true|false))', found[2])
    return found[1], {name: text or flag for name, text, flag in written}


def embedded_bucket() -> str:
    """The bucket of the embedded cloud for states, made where there is none yet.

    A role that may only reach it makes nothing. Raises ClientError where there is none and it may not be made.
    """
    make: Any = boto3.client
    s3 = make("s3")
    try:
        s3.head_bucket(Bucket=EMBEDDED_BUCKET)
    except ClientError as error:
        if error.response["Error"]["Code"] in MISSING:
            s3.create_bucket(Bucket=EMBEDDED_BUCKET)
    return EMBEDDED_BUCKET

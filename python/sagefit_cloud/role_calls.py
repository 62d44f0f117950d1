"""What IAM is asked about for a request that a container sends, or SageMaker in the name of its role.

Calls of S3 are judged with their resource and the prefix of a listing. Calls of other services are judged by their
action alone, which has to be allowed on something: what the resource of a call is, each service has rules of its own
for. Use of keys is not judged.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from sagefit.iam.evaluate import Call
from sagefit_cloud.storage import S3Uri

_FREE = ("sts:GetCallerIdentity",)  # needs no permission
_PREFIXES = {"monitoring": "cloudwatch"}  # services whose actions have another name than their signatures
# Operations whose permission has another name:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
_S3_ACTIONS = {
    "CompleteMultipartUpload": "PutObject",
    "CopyObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "DeleteObjects": "DeleteObject",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListParts": "ListMultipartUploadParts",
    "UploadPart": "PutObject",
    "UploadPartCopy": "PutObject",
}
_OF_A_VERSION = ("DeleteObject", "GetObject")
_WITH_HEADERS = {"HTTP_X_AMZ_ACL": "PutObjectAcl", "HTTP_X_AMZ_TAGGING": "PutObjectTagging"}
_COPIED = "HTTP_X_AMZ_COPY_SOURCE"


def calls_of(environ: dict[str, Any], signed_for: str, operation: str, partition: str) -> Iterator[Call]:
    """The calls of a request: ``signed_for`` is the service of its signature. Those without a resource have ``""``."""
    if signed_for == "s3":
        yield from (Call(f"s3:{action}", *about) for action, *about in _of_s3(environ, operation, partition))
        return
    action = f"{_PREFIXES.get(signed_for, signed_for)}:{operation}"
    if action not in _FREE:
        yield Call(action, "")


def _of_s3(environ: dict[str, Any], operation: str, partition: str) -> Iterator[tuple[Any, ...]]:
    bucket, _, key = _utf8(str(environ.get("PATH_INFO", ""))).lstrip("/").partition("/")
    query = parse_qs(str(environ.get("QUERY_STRING", "")), keep_blank_values=True)
    action, where = _S3_ACTIONS.get(operation, operation), S3Uri(bucket, key).arn(partition)
    if operation == "DeleteObjects":
        for name, version in _deleted(environ):
            yield _of_version(action, version), S3Uri(bucket, name).arn(partition)
    elif key:
        yield _of_version(action, "versionId" in query), where
        yield from ((also, where) for header, also in _WITH_HEADERS.items() if header in environ)
        if _COPIED in environ:
            source, _, version = unquote(str(environ[_COPIED])).lstrip("/").partition("?versionId=")
            yield _of_version("GetObject", version), S3Uri.parse(source).arn(partition)
    elif bucket:
        yield action, where, {"s3:prefix": query["prefix"][0]} if "prefix" in query else {}
    else:
        yield (action,)


def _of_version(action: str, version: object) -> str:
    return f"{action}Version" if version and action in _OF_A_VERSION else action


def _deleted(environ: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each key that DeleteObjects names, and the version of it."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    for element in ElementTree.fromstring(body).iter():  # noqa: S314
        if element.tag.rpartition("}")[2] == "Object":
            found = {part.tag.rpartition("}")[2]: part.text or "" for part in element}
            yield found.get("Key", ""), found.get("VersionId", "")


def _utf8(path: str) -> str:
    """WSGI gives a path with a letter for each byte."""
    return path.encode("latin-1").decode(errors="replace")

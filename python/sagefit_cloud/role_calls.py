"""What IAM is asked about for a request: each call with its resource and the keys of its conditions.

S3's are here, all others in `sagefit_cloud.permissions`. Whoever writes an object into a bucket with a key of its own,
or reads one, is asked for the use of the key too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from moto.s3.models import s3_backends

from sagefit.iam.evaluate import Call
from sagefit_cloud import permissions
from sagefit_cloud.rules import Place
from sagefit_cloud.storage import S3Uri

_PREFIXES = {"monitoring": "cloudwatch"}  # services whose actions have another name than their signatures
# Operations whose permission has another name:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
S3_ACTIONS = {
    "DeleteBucketCors": "PutBucketCORS",
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "DeleteBucketOwnershipControls": "PutBucketOwnershipControls",
    "DeleteBucketTagging": "PutBucketTagging",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "GetBucketAccelerateConfiguration": "GetAccelerateConfiguration",
    "GetBucketCors": "GetBucketCORS",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetBucketNotificationConfiguration": "GetBucketNotification",
    "GetBucketReplication": "GetReplicationConfiguration",
    "GetObjectLockConfiguration": "GetBucketObjectLockConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "PutBucketCors": "PutBucketCORS",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutBucketNotificationConfiguration": "PutBucketNotification",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
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
_KEY_HEADER = "HTTP_X_AMZ_SERVER_SIDE_ENCRYPTION_AWS_KMS_KEY_ID"
_WRITES = ("CopyObject", "CreateMultipartUpload", "PutObject")
_PARTS = ("CompleteMultipartUpload", "UploadPart", "UploadPartCopy")  # read what lies there encrypted already
_READS = ("GetObject", "UploadPartCopy", "CopyObject")


def calls_of(
    environ: dict[str, Any], signed_for: str, operation: str, place: Place, request: Mapping[str, Any] | None = None
) -> Iterator[Call]:
    """The calls of a request: ``signed_for`` is the service of its signature.

    ``request`` is what the operation is asked with. Where that cannot be told, its action has to be allowed on
    something, and the resource is ``""``.
    """
    service = _PREFIXES.get(signed_for, signed_for)
    if service == "s3":
        yield from (Call(f"s3:{action}", *about) for action, *about in _of_s3(environ, operation, place.partition))
        yield from _of_keys(environ, operation, place)
    elif request is not None:
        yield from permissions.calls_of(service, operation, request, place)
    elif f"{service}:{operation}" not in permissions.FREE:
        yield Call(f"{service}:{operation}", "")


def _of_keys(environ: dict[str, Any], operation: str, place: Place) -> Iterator[Call]:
    """Use of the keys of what a request to S3 writes and reads."""
    bucket, _, name = _utf8(str(environ.get("PATH_INFO", ""))).lstrip("/").partition("/")
    known = s3_backends[place.account][place.partition].buckets
    if operation in _WRITES + _PARTS and bucket in known:
        default = (known[bucket].encryption or {}).get("Rule", {}).get("ApplyServerSideEncryptionByDefault", {})
        upload = known[bucket].multiparts.get(parse_qs(str(environ.get("QUERY_STRING", ""))).get("uploadId", [""])[0])
        stated = upload.kms_key_id if upload else environ.get(_KEY_HEADER)
        if key := stated or default.get("KMSMasterKeyID"):
            yield from permissions.key_use("Decrypt" if operation in _PARTS else "GenerateDataKey", key, "s3", place)
    if operation in _READS or (operation == "HeadObject" and "HTTP_X_AMZ_CHECKSUM_MODE" in environ):
        source = unquote(str(environ.get(_COPIED, f"{bucket}/{name}"))).lstrip("/").partition("?versionId=")[0]
        of, _, what = source.partition("/")
        found = known[of].keys.get(what) if of in known else None
        if found is not None and found.kms_key_id:
            yield from permissions.key_use("Decrypt", found.kms_key_id, "s3", place)


def _of_s3(environ: dict[str, Any], operation: str, partition: str) -> Iterator[tuple[Any, ...]]:
    bucket, _, key = _utf8(str(environ.get("PATH_INFO", ""))).lstrip("/").partition("/")
    query = parse_qs(str(environ.get("QUERY_STRING", "")), keep_blank_values=True)
    action, where = S3_ACTIONS.get(operation, operation), S3Uri(bucket, key).arn(partition)
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

"""What IAM is asked about for a request that a container sends."""

from __future__ import annotations

import io
from typing import Any

import pytest

from sagefit.iam.evaluate import Call
from sagefit_cloud.role_calls import calls_of
from sagefit_cloud.rules import Place

HERE = Place("123456789012", "us-east-1", "aws")
DELETED = b"""<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>jobs/a/x</Key></Object>
<Object><Key>jobs/b/y</Key><VersionId>1</VersionId></Object></Delete>"""
OBJECT = "arn:aws:s3:::b/jobs/a/x"
CASES: list[tuple[str, str, dict[str, Any], list[tuple[Any, ...]]]] = [
    ("GetObject", "/b/jobs/a/x", {}, [("s3:GetObject", OBJECT)]),
    ("GetObject", "/b/jobs/a/x?versionId=1", {}, [("s3:GetObjectVersion", OBJECT)]),
    ("HeadObject", "/b/jobs/a/x", {}, [("s3:GetObject", OBJECT)]),
    ("GetObject", "/b/a//b/", {}, [("s3:GetObject", "arn:aws:s3:::b/a//b/")]),
    ("GetObject", "/b/\xc3\xbc", {}, [("s3:GetObject", "arn:aws:s3:::b/\u00fc")]),
    (
        "PutObject",
        "/b/jobs/a/x",
        {"HTTP_X_AMZ_TAGGING": "a=b", "HTTP_X_AMZ_ACL": "public-read"},
        [("s3:PutObject", OBJECT), ("s3:PutObjectAcl", OBJECT), ("s3:PutObjectTagging", OBJECT)],
    ),
    ("UploadPart", "/b/jobs/a/x?partNumber=1&uploadId=u", {}, [("s3:PutObject", OBJECT)]),
    ("CompleteMultipartUpload", "/b/jobs/a/x?uploadId=u", {}, [("s3:PutObject", OBJECT)]),
    ("AbortMultipartUpload", "/b/jobs/a/x?uploadId=u", {}, [("s3:AbortMultipartUpload", OBJECT)]),
    (
        "CopyObject",
        "/b/jobs/a/x",
        {"HTTP_X_AMZ_COPY_SOURCE": "/c/jobs/%C3%BC?versionId=1"},
        [("s3:PutObject", OBJECT), ("s3:GetObjectVersion", "arn:aws:s3:::c/jobs/\u00fc")],
    ),
    ("DeleteObject", "/b/jobs/a/x?versionId=1", {}, [("s3:DeleteObjectVersion", OBJECT)]),
    (
        "DeleteObjects",
        "/b?delete",
        {"body": DELETED},
        [("s3:DeleteObject", OBJECT), ("s3:DeleteObjectVersion", "arn:aws:s3:::b/jobs/b/y")],
    ),
    ("ListObjectsV2", "/b?prefix=jobs%2Fa%2F", {}, [("s3:ListBucket", "arn:aws:s3:::b", {"s3:prefix": "jobs/a/"})]),
    ("ListObjects", "/b?prefix=", {}, [("s3:ListBucket", "arn:aws:s3:::b", {"s3:prefix": ""})]),
    ("HeadBucket", "/b", {}, [("s3:ListBucket", "arn:aws:s3:::b", {})]),
    ("GetBucketPolicy", "/b?policy", {}, [("s3:GetBucketPolicy", "arn:aws:s3:::b", {})]),
    ("ListBuckets", "/", {}, [("s3:ListAllMyBuckets", "*")]),
]


@pytest.mark.parametrize(("operation", "path", "more", "wanted"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES])
def test_a_request_to_s3(operation: str, path: str, more: dict[str, Any], wanted: list[tuple[Any, ...]]) -> None:
    body: bytes = more.get("body", b"")
    place, _, query = path.partition("?")
    environ: dict[str, Any] = {
        "PATH_INFO": place,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    assert list(calls_of({**environ, **more}, "s3", operation, HERE)) == [Call(*each) for each in wanted]


def test_a_body_that_was_looked_at_can_be_read_again() -> None:
    environ: dict[str, Any] = {
        "PATH_INFO": "/b",
        "CONTENT_LENGTH": str(len(DELETED)),
        "wsgi.input": io.BytesIO(DELETED),
    }
    assert len(list(calls_of(environ, "s3", "DeleteObjects", HERE))) == 2
    assert environ["wsgi.input"].read() == DELETED


def test_what_cannot_be_read_is_judged_by_the_action() -> None:
    assert list(calls_of({}, "monitoring", "PutMetricData", HERE)) == [Call("cloudwatch:PutMetricData", "")]
    assert list(calls_of({}, "iam", "PutRolePolicy", HERE)) == [Call("iam:PutRolePolicy", "")]
    assert list(calls_of({}, "sts", "GetCallerIdentity", HERE)) == []

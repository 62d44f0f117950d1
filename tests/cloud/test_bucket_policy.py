"""Conditions of bucket policies hold in the embedded cloud as they do on S3."""

from __future__ import annotations

import pytest

from sagefit.cloud.extensions.s3 import applies

TLS = {"Bool": {"aws:SecureTransport": "false"}}
ENCRYPTION = {
    "Null": {"s3:x-amz-server-side-encryption": "false"},
    "StringNotEquals": {"s3:x-amz-server-side-encryption": ["aws:kms", "aws:kms:dsse"]},
}


@pytest.mark.parametrize(
    ("condition", "context", "holds"),
    [
        ({}, {}, True),
        (TLS, {"aws:SecureTransport": "true"}, False),
        (TLS, {"aws:SecureTransport": "false"}, True),
        ({"Bool": {"aws:SecureTransport": False}}, {"aws:SecureTransport": "false"}, True),
        ({"NumericLessThan": {"s3:TlsVersion": "1.2"}}, {"s3:TlsVersion": "1.3"}, False),
        ({"NumericLessThan": {"s3:TlsVersion": "1.2"}}, {"s3:TlsVersion": "1.0"}, True),
        (ENCRYPTION, {}, False),
        (ENCRYPTION, {"s3:x-amz-server-side-encryption": "aws:kms"}, False),
        (ENCRYPTION, {"s3:x-amz-server-side-encryption": "AES256"}, True),
        ({"ArnLike": {"aws:SourceArn": "x"}}, {"aws:SourceArn": "x"}, False),
    ],
)
def test_conditions(condition: dict[str, dict[str, str]], context: dict[str, str], holds: bool) -> None:
    assert applies(condition, context) is holds

"""Conditions of bucket policies hold in the embedded cloud as they do on S3."""

from __future__ import annotations

import pytest
from moto.s3.utils import _VersionedKeyStore

from sagefit_cloud.extensions.s3 import _items, _lists, _values, applies

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


def test_listing_does_not_mind_a_deletion_in_between() -> None:
    store = _VersionedKeyStore()
    for key, version in (("a", 1), ("a", 2), ("b", 3), ("c", 4)):
        store[key] = version
    lists = _lists(store)
    assert next(lists) == ("a", [1, 2])
    dict.pop(store, "b")
    assert list(lists) == [("b", [3]), ("c", [4])]
    assert list(_items(store)) == [("a", 2), ("c", 4)]
    assert list(_values(store)) == [2, 4]

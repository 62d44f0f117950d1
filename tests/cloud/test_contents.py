"""What S3 objects contain lies in files, is sent in pieces, and frees its space when an object goes."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud.aws_user import Aws
from sagefit_cloud.contents import CHUNK, SMALL, Content

MB = 1 << 20
SIZES = st.sampled_from([0, 1, 4, SMALL - 3, SMALL, CHUNK + 1])


@settings(deadline=None, max_examples=50)
@given(sizes=st.lists(SIZES, max_size=4), cuts=st.tuples(*[st.floats(0, 1)] * 3))
def test_a_content_is_what_was_written(sizes: list[int], cuts: tuple[float, ...]) -> None:
    written = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    whole = b"".join(written)
    begin, middle, end = sorted(round(cut * len(whole)) for cut in cuts)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        content, taken = Content(folder), Content(folder)
        for part in written:
            content.write(part)
        taken.write(content)
        assert (content.read(), len(content), len(taken)) == (b"", len(whole), len(whole))
        assert len(list(folder.iterdir())) == (len(whole) > SMALL)
        taken.seek(begin)
        assert taken.read(middle - begin) + taken.read() == whole[begin:]
        piece = taken.piece(begin, end)
        taken.close()
        assert (len(taken), list(folder.iterdir())) == (0, [])
        assert b"".join(piece[middle - begin :]) == whole[middle:end], "a piece outlives its content"


@pytest.fixture
def bucket(aws: Aws, request: pytest.FixtureRequest) -> str:
    """A bucket with versions, of this test alone."""
    name = f"contents-{hashlib.sha1(request.node.name.encode()).hexdigest()[:10]}"
    aws.client("s3").create_bucket(Bucket=name)
    aws.client("s3").put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return name


def parts(count: int) -> list[bytes]:
    return [bytes([65 + number]) * (5 * MB + number) for number in range(count)]


def upload(s3: Any, bucket: str, key: str, pieces: list[bytes], **options: str) -> Any:
    """An upload in parts; the answer to its completion."""
    begun = s3.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]
    where = {"Bucket": bucket, "Key": key, "UploadId": begun}
    sent = [
        {"PartNumber": number, "ETag": s3.upload_part(**where, PartNumber=number, Body=piece)["ETag"]}
        for number, piece in enumerate(pieces, 1)
    ]
    return s3.complete_multipart_upload(**where, MultipartUpload={"Parts": sent})


@pytest.mark.parametrize("options", [{}, {"ChecksumAlgorithm": "SHA256"}, {"ChecksumAlgorithm": "CRC32"}])
def test_parts_become_one_object(aws: Aws, bucket: str, options: dict[str, str]) -> None:
    s3, pieces = aws.client("s3"), parts(3)
    done = upload(s3, bucket, "large", pieces, **options)
    md5s = b"".join(hashlib.md5(piece, usedforsecurity=False).digest() for piece in pieces)
    assert done["ETag"].strip('"') == f"{hashlib.md5(md5s, usedforsecurity=False).hexdigest()}-3"
    assert s3.get_object(Bucket=bucket, Key="large")["Body"].read() == b"".join(pieces)
    assert s3.head_object(Bucket=bucket, Key="large")["ContentLength"] == len(b"".join(pieces))


@pytest.mark.parametrize(
    ("given", "begin", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5242870-5242890", 5242870, 5242891),
        ("bytes=6000000-", 6000000, None),
        ("bytes=-7", -7, None),
    ],
)
def test_a_range_of_a_large_object(aws: Aws, bucket: str, given: str, begin: int, end: int | None) -> None:
    s3, pieces = aws.client("s3"), parts(2)
    upload(s3, bucket, "large", pieces)
    answer = s3.get_object(Bucket=bucket, Key="large", Range=given)
    assert answer["Body"].read() == b"".join(pieces)[begin:end]
    assert answer["ContentRange"].endswith(f"/{sum(map(len, pieces))}")


def test_a_range_beyond_the_end_is_refused(aws: Aws, bucket: str) -> None:
    upload(aws.client("s3"), bucket, "large", parts(1))
    with pytest.raises(ClientError, match="InvalidRange"):
        aws.client("s3").get_object(Bucket=bucket, Key="large", Range=f"bytes={9 * MB}-")


@pytest.mark.parametrize(
    ("pieces", "spoiled", "code"),
    [
        ([b"small", b"small"], {}, "EntityTooSmall"),
        ([b"small"], {"ETag": '"00"'}, "InvalidPart"),
        ([b"small"], {"PartNumber": 2}, "InvalidPart"),
    ],
)
def test_a_wrong_list_of_parts_changes_nothing(
    aws: Aws, bucket: str, pieces: list[bytes], spoiled: dict[str, Any], code: str
) -> None:
    s3 = aws.client("s3")
    where = {"Bucket": bucket, "Key": "k", "UploadId": s3.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]}
    listed = [
        {"PartNumber": number, "ETag": s3.upload_part(**where, PartNumber=number, Body=piece)["ETag"]}
        for number, piece in enumerate(pieces, 1)
    ]
    with pytest.raises(ClientError, match=code):
        s3.complete_multipart_upload(**where, MultipartUpload={"Parts": [listed[0] | spoiled, *listed[1:]]})
    assert len(s3.list_parts(**where)["Parts"]) == len(pieces)
    good = {"Parts": listed[:1]}
    s3.complete_multipart_upload(**where, MultipartUpload=good)
    assert aws.get(f"s3://{bucket}/k") == pieces[0]


def test_versions_are_listed_without_their_content_and_free_it(aws: Aws, bucket: str, cloud_home: Path) -> None:
    s3, objects = aws.client("s3"), cloud_home / "cloud" / "objects"
    before = set(objects.iterdir())
    for body in (b"1" * MB, b"2" * MB):
        s3.put_object(Bucket=bucket, Key="k", Body=body)
    s3.put_object(Bucket=bucket, Key="small", Body=b"few")
    s3.delete_object(Bucket=bucket, Key="k")
    for _ in range(3):
        listed = s3.list_object_versions(Bucket=bucket)
    own = set(objects.iterdir()) - before
    assert len(own) == 2, "a file for each large version, and none for what was listed"
    assert [(each["Key"], each["Size"], each["IsLatest"]) for each in listed["Versions"]] == [
        ("k", MB, False),
        ("k", MB, False),
        ("small", 3, True),
    ]
    assert [each["IsLatest"] for each in listed["DeleteMarkers"]] == [True]
    newest = listed["Versions"][0]
    assert newest["ETag"].strip('"') == hashlib.md5(b"2" * MB, usedforsecurity=False).hexdigest()
    for each in listed["Versions"]:
        s3.delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])
    assert not own & set(objects.iterdir())
    assert "Versions" not in s3.list_object_versions(Bucket=bucket)


def test_an_object_that_is_replaced_while_it_is_read_is_read_to_its_end(aws: Aws) -> None:
    s3, old = aws.client("s3"), b"old" * 4 * MB
    s3.create_bucket(Bucket="replaced")
    s3.put_object(Bucket="replaced", Key="k", Body=old)
    body = s3.get_object(Bucket="replaced", Key="k")["Body"]
    first = body.read(10)
    s3.put_object(Bucket="replaced", Key="k", Body=b"new")
    assert first + body.read() == old
    assert aws.get("s3://replaced/k") == b"new"


def test_a_listing_s_copy_cannot_spoil_the_original(aws: Aws, bucket: str) -> None:
    s3 = aws.client("s3")
    s3.put_object(Bucket=bucket, Key="k", Body=b"x" * MB)
    for number in range(5):
        assert s3.list_object_versions(Bucket=bucket, Prefix="k")["Versions"][0]["Size"] == MB, number
    assert aws.get(f"s3://{bucket}/k") == b"x" * MB

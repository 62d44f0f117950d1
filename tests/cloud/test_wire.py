"""What a request asks for is read whatever its protocol and packing, and judged; contents of objects are left alone."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from typing import Any
from urllib.request import Request, urlopen

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cloud.aws_user import Aws
from sagefit_cloud import wire

_AS_IT_IS = Config(parameter_validation=False, retries={"total_max_attempts": 1})
METRICS = [{"MetricName": "loss", "Value": 1.5}] * 300  # so many that clients compress them
FORM = "application/x-www-form-urlencoded"


def environ(method: str, path: str, body: bytes = b"", **more: str) -> dict[str, Any]:
    """A request as a server gives it to an application."""
    place, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": place,
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_HOST": "127.0.0.1:80",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        **more,
    }


def asked(service: str, request: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    action = wire.action_of(request, service)
    return action, wire.parameters_of(request, service, action)


RULE = {"ID": "a", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
ENCRYPTED = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "rot13"}}]}
OBJECT = {"Bucket": "bucket-data", "Key": "wire/a"}
WRONG: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a storage class": ("put_object", {**OBJECT, "StorageClass": "COLD"}, "InvalidStorageClass", "'storageClass'"),
    "an encryption": (
        "put_object",
        {**OBJECT, "ServerSideEncryption": "rot13"},
        "InvalidEncryptionAlgorithmError",
        "enum value set: [AES256, ",
    ),
    "an ACL": ("put_object", {**OBJECT, "ACL": "everybody"}, "InvalidArgument", "'everybody' at 'aCL'"),
    "a region": (
        "create_bucket",
        {"Bucket": "bucket-moon", "CreateBucketConfiguration": {"LocationConstraint": "moon-1"}},
        "InvalidLocationConstraint",
        "'moon-1' at 'createBucketConfiguration.locationConstraint'",
    ),
    "a word of a rule": (
        "put_bucket_lifecycle_configuration",
        {"Bucket": "bucket-data", "LifecycleConfiguration": {"Rules": [{**RULE, "Status": "On"}]}},
        "MalformedXML",
        "'On' at 'lifecycleConfiguration.rules.1.member.status'",
    ),
    "a rule without its word": (
        "put_bucket_lifecycle_configuration",
        {"Bucket": "bucket-data", "LifecycleConfiguration": {"Rules": [RULE]}},
        "MalformedXML",
        "null at 'lifecycleConfiguration.rules.1.member.status'",
    ),
    "a default": (
        "put_bucket_encryption",
        {"Bucket": "bucket-data", "ServerSideEncryptionConfiguration": ENCRYPTED},
        "MalformedXML",
        "'rot13'",
    ),
    "a query": ("list_objects_v2", {"Bucket": "bucket-data", "EncodingType": "base64"}, "InvalidArgument", "'base64'"),
    "a number": ("list_buckets", {"MaxBuckets": 0}, "InvalidArgument", "value greater than or equal to 1"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_the_model_of_s3_does_not_allow_is_refused(aws: Aws, wrong: str) -> None:
    method, request, code, told = WRONG[wrong]
    with pytest.raises(ClientError) as refused:
        getattr(aws.new_client("s3", config=_AS_IT_IS), method)(**request)
    said = refused.value.response["Error"]
    assert said["Code"] == code
    assert "failed to satisfy constraint" in said["Message"]
    assert told in said["Message"]


def test_what_s3_takes_is_taken(aws: Aws) -> None:
    s3 = aws.client("s3")
    rules = [{**RULE, "Status": "Enabled", "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]}]
    rules[0]["Expiration"] = {"Days": 60}
    s3.create_bucket(Bucket="bucket-wire")
    s3.put_bucket_lifecycle_configuration(Bucket="bucket-wire", LifecycleConfiguration={"Rules": rules})
    found = s3.get_bucket_lifecycle_configuration(Bucket="bucket-wire")["Rules"]
    assert [(rule["Status"], rule["Transitions"]) for rule in found] == [("Enabled", rules[0]["Transitions"])]
    packed = gzip.compress(b"Action=DeleteObject")
    s3.put_object(
        Bucket="bucket-wire",
        Key="a b/ü",
        Body=packed,
        ContentType="text/csv",
        ContentEncoding="gzip",
        Metadata={"x": "y"},
    )
    answer = s3.get_object(Bucket="bucket-wire", Key="a b/ü")
    assert answer["Body"].read() == packed
    assert (answer["ContentType"], answer["ContentEncoding"], answer["Metadata"]) == ("text/csv", "gzip", {"x": "y"})
    assert s3.list_objects_v2(Bucket="bucket-wire", Delimiter="", Prefix="", EncodingType="url")["KeyCount"] == 1
    s3.delete_objects(Bucket="bucket-wire", Delete={"Objects": [{"Key": "a b/ü"}], "Quiet": True})
    assert "Contents" not in s3.list_objects_v2(Bucket="bucket-wire")


class _Unread(io.BytesIO):
    def read(self, *_: Any) -> bytes:
        raise AssertionError("the content of an object was read")


@pytest.mark.parametrize("path", ["/b/k", "/b/k?partNumber=2&uploadId=u"])
def test_the_content_of_an_object_is_not_read(path: str) -> None:
    request = environ("PUT", path, CONTENT_TYPE=FORM, HTTP_CONTENT_ENCODING="aws-chunked") | {"wsgi.input": _Unread()}
    action, found = asked("s3", request)
    assert action == ("UploadPart" if "?" in path else "PutObject")
    assert found is not None
    assert (found["Bucket"], found["Key"], "Body" in found) == ("b", "k", False)


def test_a_request_to_s3_is_the_one_that_its_path_says() -> None:
    others = environ("PUT", "/b/k?Action=GetObject", HTTP_X_AMZ_TARGET="S3.GetObject")
    assert wire.action_of(others, "s3") == "PutObject"


def test_a_body_that_was_read_can_be_read_again() -> None:
    body = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    request = environ("PUT", "/b/k?tagging", body)
    action, found = asked("s3", request)
    assert (action, found and found["Tagging"]) == ("PutObjectTagging", {"TagSet": [{"Key": "a", "Value": "b"}]})
    assert request["wsgi.input"].read() == body


@pytest.mark.parametrize("kind", ["form", "json"])
def test_a_compressed_body_is_read(kind: str) -> None:
    body = b"Action=PutMetricData&Version=2010-08-01&Namespace=" + b"n" * 200
    more = {"CONTENT_TYPE": FORM}
    if kind == "json":
        body = json.dumps({"Namespace": "n" * 200}).encode()
        more = {"CONTENT_TYPE": "application/x-amz-json-1.0", "HTTP_X_AMZ_TARGET": "Granite.PutMetricData"}
    request = environ("POST", "/", gzip.compress(body), HTTP_CONTENT_ENCODING="gzip", **more)
    action, found = asked("cloudwatch", request)
    assert (action, found) == ("PutMetricData", {"Namespace": "n" * 200})
    assert gzip.decompress(request["wsgi.input"].read()) == body


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"{}")[:-9], "gzip"),
        (b"{}", "gzip"),
        (zlib.compress(b"{}"), "deflate"),
        (gzip.compress(b" " * (17 << 20)), "gzip"),
    ],
    ids=["cut", "not compressed", "otherwise", "too large"],
)
def test_a_body_that_cannot_be_unpacked_is_not_guessed_at(body: bytes, encoding: str) -> None:
    more = {"CONTENT_TYPE": FORM, "HTTP_CONTENT_ENCODING": encoding}
    assert wire.action_of(environ("POST", "/", body, **more), "cloudwatch") == "POST"
    told = {**more, "CONTENT_TYPE": "application/x-amz-json-1.0", "HTTP_X_AMZ_TARGET": "Granite.PutMetricData"}
    assert asked("cloudwatch", environ("POST", "/", body, **told)) == ("PutMetricData", None)


def test_compressed_metrics_are_judged(aws: Aws) -> None:
    """By the model, and by the namespace that a user's policy names."""
    unit = [*METRICS, {"MetricName": "loss", "Value": 1.0, "Unit": "Miles"}]
    cloudwatch = aws.new_client("cloudwatch", config=_AS_IT_IS)
    sent: list[Any] = []
    cloudwatch.meta.events.register("before-send.*.*", lambda request, **_: sent.append(request.headers))
    with pytest.raises(ClientError, match="'Miles'"):
        cloudwatch.put_metric_data(Namespace="own", MetricData=unit)
    assert [bytes(each["Content-Encoding"]) for each in sent] == [b"gzip"]

    iam = aws.client("iam")
    iam.create_user(UserName="metrics")
    own = {"StringEquals": {"cloudwatch:namespace": "own"}}
    allow = {"Effect": "Allow", "Action": "cloudwatch:PutMetricData", "Resource": "*", "Condition": own}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    iam.put_user_policy(UserName="metrics", PolicyName="own", PolicyDocument=policy)
    key = iam.create_access_key(UserName="metrics")["AccessKey"]
    theirs = Aws(
        {
            **aws.environment,
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
    ).new_client("cloudwatch")
    theirs.put_metric_data(Namespace="own", MetricData=METRICS)
    with pytest.raises(ClientError, match="not authorized to perform: cloudwatch:PutMetricData"):
        theirs.put_metric_data(Namespace="other", MetricData=METRICS)


def test_cbor_is_refused_in_words(aws: Aws) -> None:
    key = aws.environment["AWS_ACCESS_KEY_ID"]
    request = Request(
        f"{aws.endpoint}/service/GraniteServiceVersion20100801/operation/ListMetrics",
        data=b"\xa0",
        headers={
            "Content-Type": "application/cbor",
            "Smithy-Protocol": "rpc-v2-cbor",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/monitoring/aws4_request, "
            "SignedHeaders=host, Signature=0",
        },
    )
    with pytest.raises(OSError, match="400") as refused:
        urlopen(request)
    answer: Any = refused.value
    assert "cloudwatch:ListMetrics is not part of the embedded cloud" in answer.read().decode()

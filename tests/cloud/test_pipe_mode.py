"""Pipe mode: channels as named pipes that scripts read pass by pass."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud.aws_user import Aws
from sagefit_cloud import pipes, recordio

READ = """
import base64, json, os, sys
root = os.environ["SAGEFIT_ML_ROOT"]
for epoch in range(int(json.load(open(f"{root}/input/config/hyperparameters.json"))["epochs"])):
    with open(f"{root}/input/data/train_{epoch}", "rb") as pipe:
        print(epoch, base64.b64encode(pipe.read()).decode())
"""


def channel(uri: str, kind: str = "S3Prefix", name: str = "train", **more: Any) -> dict[str, Any]:
    source = {"S3DataType": kind, "S3Uri": uri} | more.pop("source", {})
    return {"ChannelName": name, "InputMode": "Pipe", "DataSource": {"S3DataSource": source}} | more


def start(aws: Aws, script: str, train: dict[str, Any], epochs: int = 1, **changes: Any) -> str:
    request = aws.request(script, HyperParameters={"epochs": str(epochs)}, **changes)
    request["InputDataConfig"].append(train)
    aws.client("sagemaker").create_training_job(**request)
    return str(request["TrainingJobName"])


def passes(aws: Aws, train: dict[str, Any], epochs: int = 1) -> list[bytes]:
    """What a job reads of a channel in each pass."""
    name = start(aws, READ, train, epochs)
    job = aws.wait(name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    return [base64.b64decode(line.split(" ")[1]) for line in aws.lines(name)]


def records(stream: bytes) -> list[bytes]:
    """The contents of whole RecordIO records, each at a multiple of four bytes."""
    found, at = [], 0
    while at < len(stream):
        magic, length = struct.unpack_from("<II", stream, at)
        assert magic == 0xCED7230A
        assert length >> 29 == 0
        found.append(stream[at + 8 : at + 8 + length])
        at += 8 + length + -length % 4
    return found


def test_each_pass_is_a_pipe_with_the_objects_in_the_order_of_their_keys(aws: Aws) -> None:
    large = bytes(range(256)) * 512  # more than a pipe holds
    for key, body in (("b", b"second,"), ("a", b"first,"), ("c", large)):
        aws.put(f"pipe/plain/{key}", body)
    assert passes(aws, channel("s3://bucket-data/pipe/plain/"), epochs=2) == [b"first,second," + large] * 2


def test_gzip_is_undone_and_records_are_wrapped(aws: Aws) -> None:
    for key, body in (("1", b"one"), ("2", b"two!"), ("3", b"")):
        aws.put(f"pipe/packed/{key}", gzip.compress(body))
    packed = channel("s3://bucket-data/pipe/packed/", CompressionType="Gzip", RecordWrapperType="RecordIO")
    (stream,) = passes(aws, packed)
    assert records(stream) == [b"one", b"two!", b""]
    assert recordio.record(b"one") == stream[:12]


def test_a_manifest_is_read_in_its_own_order(aws: Aws) -> None:
    for key in ("x", "y"):
        aws.put(f"pipe/listed/{key}", f"{key};")
    manifest = aws.put("pipe/listed.manifest", json.dumps([{"prefix": "s3://bucket-data/pipe/listed/"}, "y", "x"]))
    assert passes(aws, channel(manifest, "ManifestFile")) == [b"y;x;"]


def test_the_seed_gives_each_pass_an_order_of_its_own(aws: Aws) -> None:
    for index in range(8):
        aws.put(f"pipe/shuffled/{index}", str(index))
    shuffled = channel("s3://bucket-data/pipe/shuffled/", ShuffleConfig={"Seed": 7})
    first = passes(aws, shuffled, epochs=3)
    assert first == passes(aws, shuffled, epochs=3)
    assert len(set(first)) == 3
    assert {bytes(sorted(order)) for order in first} == {b"01234567"}


def test_hosts_share_out_the_objects(aws: Aws) -> None:
    for index in range(5):
        aws.put(f"pipe/shards/{index}", str(index))
    sharded = channel("s3://bucket-data/pipe/shards/", source={"S3DataDistributionType": "ShardedByS3Key"})
    resources = {"InstanceType": "ml.m5.large", "InstanceCount": 2, "VolumeSizeInGB": 10}
    script = READ.replace("base64.b64encode(pipe.read()).decode()", "pipe.read().decode()")
    name = start(aws, script, sharded, ResourceConfig=resources)
    assert aws.wait(name)["TrainingJobStatus"] == "Completed"
    assert [aws.lines(name, host) for host in ("algo-1", "algo-2")] == [["0 024"], ["0 13"]]


def test_an_augmented_manifest_gives_one_record_for_each_attribute(aws: Aws) -> None:
    for key in ("cat", "dog"):
        aws.put(f"pipe/images/{key}.jpg", f"picture of a {key}")
    lines = [
        {"label": 1, "image-ref": f"s3://bucket-data/pipe/images/{key}.jpg", "unused": "x", "box": {"w": 2}}
        for key in ("dog", "cat")
    ]
    manifest = aws.put("pipe/augmented.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    wanted = channel(
        manifest,
        "AugmentedManifestFile",
        RecordWrapperType="RecordIO",
        source={"AttributeNames": ["image-ref", "label", "box"]},
    )
    (stream,) = passes(aws, wanted)
    assert records(stream) == [b"picture of a dog", b"1", b'{"w": 2}', b"picture of a cat", b"1", b'{"w": 2}']


def test_a_reader_may_close_early_and_go_on_to_the_next_pass(aws: Aws) -> None:
    aws.put("pipe/early/a", b"0123456789" * 100_000)
    script = """
import os
for epoch in range(3):
    with open(os.environ["SAGEFIT_ML_ROOT"] + f"/input/data/train_{epoch}", "rb", buffering=0) as pipe:
        print(epoch, pipe.read(10).decode())
"""
    name = start(aws, script, channel("s3://bucket-data/pipe/early/"))
    assert aws.wait(name)["TrainingJobStatus"] == "Completed"
    assert aws.lines(name) == [f"{epoch} 0123456789" for epoch in range(3)]


def test_data_that_cannot_be_streamed_fails_the_job(aws: Aws) -> None:
    aws.put("pipe/broken/a", b"this is no archive")
    name = start(aws, READ, channel("s3://bucket-data/pipe/broken/", CompressionType="Gzip"))
    job = aws.wait(name)
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].startswith("ClientError: Data download failed:s3://bucket-data/pipe/broken/a: Not a")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "RecordWrapperType RecordIO only"),
        ({"RecordWrapperType": "RecordIO", "CompressionType": "Gzip"}, "uncompressed only"),
        ({"RecordWrapperType": "RecordIO"}, "line 1 of s3://bucket-data/pipe/poor.jsonl is no JSON object"),
    ],
)
def test_what_is_not_known_of_augmented_manifests_is_refused(aws: Aws, more: dict[str, Any], why: str) -> None:
    manifest = aws.put("pipe/poor.jsonl", '{"label": 1}\n')
    train = channel(manifest, "AugmentedManifestFile", source={"AttributeNames": ["image-ref"]}, **more)
    job = aws.wait(start(aws, READ, train))
    assert job["TrainingJobStatus"] == "Failed"
    assert why in job["FailureReason"]


def test_a_stop_ends_the_stream_that_nobody_reads_to_its_end(aws: Aws) -> None:
    aws.put("pipe/stopped/a", bytes(10_000_000))
    script = """
import os, time
pipe = open(os.environ["SAGEFIT_ML_ROOT"] + "/input/data/train_0", "rb")
pipe.read(1)
print("reading", flush=True)
time.sleep(600)
"""
    name = start(aws, script, channel("s3://bucket-data/pipe/stopped/"))
    aws.wait_for_line(name, "reading")
    aws.client("sagemaker").stop_training_job(TrainingJobName=name)
    assert aws.wait(name)["TrainingJobStatus"] == "Stopped"


class Endless(pipes.Channel):
    def __init__(self) -> None:
        self.name = "train"

    def content(self, epoch: int) -> Iterator[bytes]:
        while True:
            yield bytes([epoch]) * 1000


@pytest.mark.parametrize("opened", [False, True])
def test_stopping_frees_a_writer_whether_or_not_its_pipe_was_opened(tmp_path: Path, opened: bool) -> None:
    stream = pipes.Stream(Endless(), tmp_path)
    stream.start()
    with (tmp_path / "train_0").open("rb") if opened else contextlib.nullcontext() as reader:
        if reader:
            assert reader.read(1) == b"\0"
        stream.stop()
        assert not stream.is_alive()

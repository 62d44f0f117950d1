"""AWS as a user of the embedded cloud sees it, with training jobs in few words."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/python:3.12"
ROLE = "arn:aws:iam::123456789012:role/execution"
GRACE_SECONDS = 3
ENDED = ("Completed", "Failed", "Stopped")
_names = itertools.count()


@dataclass
class Aws:
    """AWS as a user of the embedded cloud sees it, who has its environment."""

    environment: Mapping[str, str]
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        return self.environment["AWS_ENDPOINT_URL"]

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.new_client(service)
        return self._clients[service]

    def new_client(self, service: str, **settings: Any) -> Any:
        make: Any = boto3.client
        settings = {"region_name": "us-east-1"} | settings
        return make(
            service,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
            **settings,
        )

    def prepare(self) -> None:
        """The role and the buckets jobs need."""
        services = [f"{service}.amazonaws.com" for service in ("sagemaker", "states")]
        principal = {"Effect": "Allow", "Principal": {"Service": services}, "Action": "sts:AssumeRole"}
        trust = {"Version": "2012-10-17", "Statement": [principal]}
        self.client("iam").create_role(RoleName="execution", AssumeRolePolicyDocument=json.dumps(trust))
        actions = ["sagemaker:*", "iam:PassRole", "s3:*", "ecr:*", "logs:*", "cloudwatch:PutMetricData"]
        allow = {"Effect": "Allow", "Action": actions, "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        self.client("iam").put_role_policy(RoleName="execution", PolicyName="states", PolicyDocument=policy)
        for bucket in ("data", "artifacts", "checkpoints"):
            self.client("s3").create_bucket(Bucket=f"bucket-{bucket}")

    def put(self, key: str, body: str | bytes, bucket: str = "bucket-data") -> str:
        self.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
        return f"s3://{bucket}/{key}"

    def get(self, uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        body: bytes = self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        pages = self.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    def request(self, script: str, **changes: Any) -> dict[str, Any]:
        """A request for a job that runs a script; changes replace whole fields."""
        name = changes.pop("TrainingJobName", f"job-{next(_names)}")
        self.put(f"code/{name}/train.py", script)
        code = {"S3DataType": "S3Prefix", "S3Uri": f"s3://bucket-data/code/{name}/"}
        request: dict[str, Any] = {
            "TrainingJobName": name,
            "RoleArn": ROLE,
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": ["python3"],
                "ContainerArguments": ["/opt/ml/input/data/code/train.py"],
            },
            "InputDataConfig": [{"ChannelName": "code", "DataSource": {"S3DataSource": code}}],
            "OutputDataConfig": {"S3OutputPath": "s3://bucket-artifacts/jobs"},
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 300},
        }
        return request | changes

    def start(self, script: str, **changes: Any) -> str:
        request = self.request(script, **changes)
        self.client("sagemaker").create_training_job(**request)
        return str(request["TrainingJobName"])

    def describe(self, name: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.client("sagemaker").describe_training_job(TrainingJobName=name)
        return answer

    def wait(self, name: str, seconds: float = 60) -> dict[str, Any]:
        """Wait for a job's end."""
        return self.wait_until(name, ENDED, seconds)

    def wait_until(self, name: str, statuses: tuple[str, ...], seconds: float = 60) -> dict[str, Any]:
        """Wait until a job's status or secondary status is one of some."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            job = self.describe(name)
            if job["TrainingJobStatus"] in statuses or job["SecondaryStatus"] in statuses:
                return job
            time.sleep(0.05)
        pytest.fail(f"{name} is {job['TrainingJobStatus']}/{job['SecondaryStatus']} after {seconds} s")

    def run(self, script: str, **changes: Any) -> dict[str, Any]:
        return self.wait(self.start(script, **changes))

    def lines(self, name: str, host: str = "algo-1") -> list[str]:
        """Log lines of a job's host."""
        logs, group = self.client("logs"), "/aws/sagemaker/TrainingJobs"
        found = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{name}/{host}-")["logStreams"]
        return [
            event["message"]
            for stream in found
            for event in logs.get_log_events(
                logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
        ]

    def wait_for_line(self, name: str, text: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.describe(name)["SecondaryStatus"] == "Training" and text in self._try_lines(name):
                return
            time.sleep(0.1)
        pytest.fail(f"{name} did not print {text!r} within {seconds} s")

    def _try_lines(self, name: str) -> list[str]:
        try:
            return self.lines(name)
        except self.client("logs").exceptions.ResourceNotFoundException:
            return []

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def statuses(job: dict[str, Any]) -> list[str]:
    """The secondary statuses a job went through."""
    return [step["Status"] for step in job["SecondaryStatusTransitions"]]

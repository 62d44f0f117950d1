"""A platform and a job with a fault in each thing that is looked at: a line for each, which a repair takes away."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from docs.pages import all_blocks
from doctor.conftest import ACCOUNT, REGION, Account
from sagefit.cli.doctor import as_line
from sagefit.doctor import Finding, examine
from sagefit.job import load_job
from sagefit.planning import plan
from sagefit.target import Target

pytestmark = pytest.mark.xdist_group("doctor")

_ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}
_MACHINES = {"Effect": "Deny", "Action": "states:CreateStateMachine", "Resource": "*"}
_REPOSITORY = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/own"
_JOB = """
name: churn
platform: vision
image: {{ repository: {repository}, tag: v1 }}
inputs: {{ train: s3://sagefit-vision-data/train/ }}
resources: {{ max_runtime: 1h, subnet_ids: [{subnet}], security_group_ids: [{group}] }}
attempts:
  - {{ name: spot, instance_type: ml.g5.2xlarge, instance_count: 2, spot: true, max_wait: 2h }}
  - {{ name: sure, instance_type: ml.g5.2xlarge, instance_count: 6 }}
"""
_BACKEND = """
terraform {
  backend "s3" {
    bucket       = "states-of-ada"
    region       = "us-east-1"
    use_lockfile = true
  }
}
"""


class Broken:
    """The platform with its faults, and how each is repaired."""

    def __init__(self, account: Account, folder: Path) -> None:
        self.account, self.folder = account, folder
        self.ec2, self.sns = account.client("ec2"), account.client("sns")
        self.environment = account.user("ada", _ALL, _MACHINES)
        self.key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
        account.client("kms").disable_key(KeyId=self.key.rpartition("/")[2])
        self.topic = self.sns.create_topic(Name="sagefit-vision-alarms")["TopicArn"]
        self.subscription = self.sns.subscribe(
            TopicArn=self.topic, Protocol="email", Endpoint="ada@example.com", ReturnSubscriptionArn=True
        )["SubscriptionArn"]
        self.network = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnets = [self._subnet(f"{REGION}e", "10.0.0.0/24")]
        made = self.ec2.create_security_group(GroupName="jobs", Description="jobs", VpcId=self.network)
        self.group = made["GroupId"]
        account.client("s3").create_bucket(Bucket="sagefit-vision-data")
        account.publish("vision", kms_key_arn=self.key, topic_arn=self.topic, allowed_instance_types=["ml.m5.large"])

    def _subnet(self, zone: str, block: str) -> str:
        made = self.ec2.create_subnet(VpcId=self.network, CidrBlock=block, AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def findings(self) -> list[Finding]:
        """What is found now."""
        path = self.folder / "churn.yaml"
        path.write_text(_JOB.format(repository=_REPOSITORY, subnet=", ".join(self.subnets), group=self.group))
        return list(examine(Target("aws", self.folder), "vision", plan(load_job(str(path)))))

    def as_on_the_page(self, line: str) -> str:
        """A line with the names that the page has for what is different each time."""
        names = {
            f"{self.folder}/platform/": "",
            f"{self.folder}/": "jobs/",
            f"{self.folder}/job": "job",
            self.key.rpartition("/")[2]: "KEY",
            self.subnets[0]: "subnet-1",
            self.group: "sg-1",
            self.network: "vpc-1",
        }
        for name, shown in names.items():
            line = line.replace(name, shown)
        return re.sub(r"rtb-[0-9a-f]+", "rtb-1", line).replace("jobs/job/", "job/")

    def faults(self) -> list[str]:
        """The check of each fault, in order."""
        return [finding.check for finding in self.findings() if finding.state == "fault"]

    def allow_machines(self) -> None:
        policy = {"Version": "2012-10-17", "Statement": [_ALL]}
        iam = self.account.client("iam")
        iam.put_user_policy(UserName="ada", PolicyName="own", PolicyDocument=json.dumps(policy))

    def enable_key(self) -> None:
        self.account.client("kms").enable_key(KeyId=self.key.rpartition("/")[2])

    def allow_types(self) -> None:
        self.account.client("ssm").delete_parameter(Name="/sagefit/vision")
        self.account.publish("vision", kms_key_arn=self.key, topic_arn=self.topic)

    def confirm(self) -> None:
        self.sns.confirm_subscription(TopicArn=self.topic, Token=self.subscription)

    def make_state_bucket(self) -> None:
        self.account.client("s3").create_bucket(Bucket="states-of-ada")

    def raise_quota(self) -> None:
        """By the command that the line names."""
        line = next(each for each in self.findings() if each.check == "quota")
        words = line.fix.split()
        asked = dict(zip(words[3::2], words[4::2], strict=True))
        self.account.client("service-quotas").request_service_quota_increase(
            ServiceCode=asked["--service-code"],
            QuotaCode=asked["--quota-code"],
            DesiredValue=float(asked["--desired-value"]),
        )

    def push_image(self) -> None:
        ecr = self.account.client("ecr")
        ecr.create_repository(repositoryName="own")
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json"}
        ecr.put_image(repositoryName="own", imageManifest=json.dumps(manifest), imageTag="v1")

    def upload(self) -> None:
        self.account.client("s3").put_object(Bucket="sagefit-vision-data", Key="train/a.csv", Body=b"1")

    def add_zone(self) -> None:
        """A subnet where the type is to be had, which has no way to S3 either."""
        self.subnets.append(self._subnet(f"{REGION}a", "10.0.1.0/24"))

    def let_in_members(self) -> None:
        pair = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": self.group}]}
        self.ec2.authorize_security_group_ingress(GroupId=self.group, IpPermissions=[pair])

    def make_endpoint(self) -> None:
        tables = self.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [self.network]}])["RouteTables"]
        self.ec2.create_vpc_endpoint(
            VpcId=self.network,
            ServiceName=f"com.amazonaws.{REGION}.s3",
            RouteTableIds=[table["RouteTableId"] for table in tables],
        )


@pytest.fixture
def broken(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broken:
    for name in ("platform", "job"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "backend_override.tf").write_text(_BACKEND)
    monkeypatch.setattr("sagefit.doctor.state.ROOT", tmp_path / "platform")
    monkeypatch.setattr("sagefit.doctor.state.JOB_ROOT", tmp_path / "job")
    made = Broken(account, tmp_path)
    for name, value in made.environment.items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it would remember the key
    return made


def test_every_fault_is_a_line_until_it_is_repaired(broken: Broken) -> None:
    repairs: list[tuple[str, int, Callable[[], None]]] = [
        ("state", 1, broken.make_state_bucket),
        ("permissions", 1, broken.allow_machines),
        ("key", 1, broken.enable_key),
        ("job", 2, broken.allow_types),
        ("quota", 1, broken.raise_quota),
        ("image", 1, broken.push_image),
        ("inputs", 1, broken.upload),
        ("zones", 1, broken.add_zone),
        ("network", 1, broken.let_in_members),
        ("endpoints", 1, broken.make_endpoint),
        ("alarms", 1, broken.confirm),
    ]
    found = broken.findings()
    shown = [line.plain for line in map(as_line, found) if line.plain.startswith("FAULT")]
    (page,) = (block.text for block in all_blocks("console", way="run by") if block.page.name == "doctor.md")
    assert [broken.as_on_the_page(line) for line in shown] == page.splitlines()[1:]
    faults = [finding for finding in found if finding.state == "fault"]
    assert [finding.check for finding in faults] == [check for check, lines, _ in repairs for _ in range(lines)]
    assert all(finding.fix for finding in faults)
    assert not any("\n" in finding.message + finding.fix for finding in found)
    assert [finding.check for finding in found if finding.state == "unknown"] == []
    for check, _, repair in repairs:
        repair()
        assert check not in broken.faults(), check
    assert broken.faults() == []

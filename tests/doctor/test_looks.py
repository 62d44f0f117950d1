"""Each look by itself: what it says where all is well, where something is wrong, and where it may not ask."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli_runner import Sagefit
from doctor.conftest import ACCOUNT, REGION, Account
from sagefit.deploy import job_terraform
from sagefit.doctor import (
    Finding,
    account,
    data,
    examine,
    images,
    logs,
    network,
    permissions,
    quotas,
    state,
    tools,
    written,
)
from sagefit.doctor.asking import guarded
from sagefit.job import Job, load_job
from sagefit.job.images import region_problems
from sagefit.planning import JobPlan, plan
from sagefit.platform import Network, Platform
from sagefit.target import Target

pytestmark = pytest.mark.xdist_group("doctor")

_ALL = {"Effect": "Allow", "Action": "*", "Resource": "*"}
_FRAMEWORK = "framework: sklearn, version: 1.2-1"
_GPU = "framework: pytorch, version: 2.5.1"
_JOB = """
name: tried
platform: tried
image: {{ {image} }}
code: {{ source_dir: ., entry_point: train.py }}
resources: {{ instance_type: {type}, instance_count: {count}, max_runtime: 1h }}
attempts: [{{ name: only }}]
{more}
"""
_S3 = """
terraform {{
  # backend "s3" {{ bucket = "another" }}
  backend "s3" {{
    bucket = "{bucket}"
    region = "us-east-1"
    {lock}
  }}
}}
"""
_LOCK_FILE = "use_lockfile = true"


@pytest.fixture(autouse=True)
def _asks(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of the account asks, unless a test says otherwise."""
    _ask_as(monkeypatch, account.environment)


def _ask_as(patch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name, value in environment.items():
        if name.startswith("AWS_"):
            patch.setenv(name, value)
    if "AWS_SESSION_TOKEN" not in environment:
        patch.delenv("AWS_SESSION_TOKEN", raising=False)
    patch.setattr(boto3, "DEFAULT_SESSION", None)  # it would remember the key


def _planned(
    folder: Path, image: str = _FRAMEWORK, ml_type: str = "ml.m5.large", count: int = 1, more: str = ""
) -> JobPlan:
    (folder / "train.py").touch()
    path = folder / "tried.yaml"
    path.write_text(_JOB.format(image=image, type=ml_type, count=count, more=more))
    return plan(load_job(str(path)))


def _platform(**more: Any) -> Platform:
    buckets = {kind: f"sagefit-tried-{kind}" for kind in ("data", "artifacts", "checkpoints")}
    return Platform.model_validate(
        {"schema_": 1, "name": "tried", "partition": "aws", "region": REGION, "account_id": ACCOUNT, "buckets": buckets}
        | more
    )


def _caller() -> account.Caller:
    found = account.find_caller()
    assert isinstance(found, account.Caller)
    return found


def _only(findings: Iterator[Finding]) -> Finding:
    (found,) = findings
    return found


# --- who asks


def test_without_a_region_nothing_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    found = account.find_caller()
    assert isinstance(found, Finding)
    assert (found.state, found.message) == ("fault", "no region is set")


def test_without_credentials_nothing_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    found = account.find_caller()
    assert isinstance(found, Finding)
    assert (found.state, found.message) == ("fault", "there are no credentials for AWS")


def test_a_key_that_aws_does_not_know_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    found = account.find_caller()
    assert isinstance(found, Finding)
    assert found.state == "fault"
    assert "InvalidClientTokenId" in found.message


def test_a_platform_that_is_not_applied_is_a_fault_of_a_job_alone() -> None:
    assert [account.find_platform("absent", needed=needed)[1].state for needed in (False, True)] == ["ok", "fault"]


_VARIABLES = """
name                     = "tried"
regional_names           = true
permissions_boundary_arn = "arn:aws:iam::123456789012:policy/limit"
kms                      = {{ key_arn = "{key}" }}
network                  = {{ subnet_ids = ["subnet-00000000"], security_group_ids = [] }}
"""


def test_before_the_first_apply_its_variables_are_looked_at(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written, "PLATFORMS", tmp_path)
    made = account.client("kms").create_key()["KeyMetadata"]
    account.client("kms").disable_key(KeyId=made["KeyId"])
    key = made["Arn"]
    (tmp_path / "tried.tfvars").write_text(_VARIABLES.format(key=key))
    faults = [finding for finding in examine(Target("local", tmp_path), "tried") if finding.state == "fault"]
    assert [fault.check for fault in faults] == ["key", "network"]
    assert faults[0].message == f"{key} is Disabled"
    assert "subnet-00000000" in faults[1].message
    found = written.as_written("tried", _caller())
    assert found
    assert found.permissions_boundary_arn == "arn:aws:iam::123456789012:policy/limit"
    assert found.global_suffix == f"_{REGION}"


def test_variables_that_cannot_be_read_are_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "PLATFORMS", tmp_path)
    (tmp_path / "tried.tfvars").write_text("network = {\n")
    faults = [finding for finding in examine(Target("local", tmp_path), "tried") if finding.state == "fault"]
    assert [fault.check for fault in faults] == ["platform"]
    assert "tried.tfvars: " in faults[0].message


def test_a_platform_without_variables_is_not_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "PLATFORMS", tmp_path)
    assert written.as_written("tried", _caller()) is None


# --- what runs here


def test_an_old_terraform_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _only(tools.check_tools()).state == "ok"
    (tmp_path / "terraform").write_text('#!/bin/sh\necho \'{"terraform_version": "1.5.7"}\'\n')
    (tmp_path / "terraform").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SAGEFIT_HOME", str(tmp_path))
    found = _only(tools.check_tools())
    assert found.state == "fault"
    assert "1.5.7" in found.message


def test_a_mirror_without_the_provider_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEFIT_PLUGIN_MIRROR", str(tmp_path))
    found = _only(tools.check_tools())
    assert (found.state, f"{tmp_path} holds no hashicorp/aws" in found.message) == ("fault", True), found
    assert found.fix.startswith(f"fill it with: terraform providers mirror {tmp_path}")


# --- where the state lies


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two roots, which have no override yet."""
    for name in ("ROOT", "JOB_ROOT"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(state, name, tmp_path / name)
    return tmp_path


def _in_backend(
    roots: Path, bucket: str, lock: str = _LOCK_FILE, names: tuple[str, ...] = ("ROOT", "JOB_ROOT")
) -> None:
    for name in names:
        (roots / name / "backend_override.tf").write_text(_S3.format(bucket=bucket, lock=lock))


def _states(folder: Path, job: Job | None = None, platform: Platform | None = None) -> list[Finding]:
    return list(guarded("state", state.check_state(Target("aws", folder), _caller(), "tried", platform, job)))


@pytest.mark.parametrize(
    ("bucket", "lock", "expected", "told"),
    [
        ("here", _LOCK_FILE, "ok", "can be reached"),
        ("here", "", "fault", "nothing keeps two applies of one state apart"),
        ("nowhere", _LOCK_FILE, "fault", "there is no bucket nowhere"),
        ("${var.bucket}", "", "unknown", "names no bucket in S3"),
    ],
)
def test_state_in_a_bucket(account: Account, roots: Path, bucket: str, lock: str, expected: str, told: str) -> None:
    account.client("s3").create_bucket(Bucket="here")
    _in_backend(roots, bucket, lock)
    found = _states(roots)[0]
    assert (found.state, told in found.message) == (expected, True), found
    assert _only(state.check_state(Target("local", roots), _caller(), "tried", None, None)).state == "ok"


def test_a_backend_of_one_root_alone_is_a_fault(account: Account, roots: Path) -> None:
    account.client("s3").create_bucket(Bucket="here")
    assert [finding.state for finding in _states(roots)] == ["ok"]
    _in_backend(roots, "here", names=("ROOT",))
    found = _states(roots)[0]
    assert found.state == "fault"
    assert "is missing" in found.message


def test_a_bucket_that_is_closed_to_the_caller_is_a_fault(
    account: Account, roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.client("s3").create_bucket(Bucket="closed")
    _in_backend(roots, "closed")
    _ask_as(monkeypatch, account.user("outside", {"Effect": "Allow", "Action": "iam:*", "Resource": "*"}))
    found = _only(iter(_states(roots)))
    assert (found.state, found.message.startswith("you may not look into closed (")) == ("fault", True)
    assert "s3:ListBucket" in found.fix


_NAMES = (f"planner-{number}" for number in itertools.count())
_STATE = "s3://states/sagefit/tried/platform.tfstate"
_TABLE = 'dynamodb_table = "locks"'
_KEY_ID = "1234abcd-12ab-34cd-56ef-1234567890ab"
_KEYED = f'{_LOCK_FILE}\n    kms_key_id = "{_KEY_ID}"'
_KEY_ARN = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{_KEY_ID}"
_IN_BUCKET = "arn:aws:s3:::states/sagefit/tried/platform.tfstate"
_IN_TABLE = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/locks"


@pytest.mark.parametrize(
    ("settings", "action", "resource", "told"),
    [
        (_LOCK_FILE, "s3:GetObject", _IN_BUCKET, [f"to read {_STATE} you lack s3:GetObject (1 of 1 calls)"]),
        (_LOCK_FILE, "s3:PutObject", _IN_BUCKET, [f"to write {_STATE} you lack s3:PutObject (1 of 1 calls)"]),
        *(
            (_LOCK_FILE, action, f"{_IN_BUCKET}.tflock", [f"to lock {_STATE} you lack {action} (1 of 3 calls)"])
            for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
        ),
        *(
            (_TABLE, action, _IN_TABLE, [f"to lock {_STATE} you lack {action} (1 of 3 calls)"])
            for action in ("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem")
        ),
        (_KEYED, "kms:Decrypt", _KEY_ARN, [f"to read {_STATE} you lack kms:Decrypt (1 of 2 calls)"]),
        (
            _KEYED,
            "kms:GenerateDataKey",
            _KEY_ARN,
            [
                f"to lock {_STATE} you lack kms:GenerateDataKey (1 of 4 calls)",
                f"to write {_STATE} you lack kms:GenerateDataKey (1 of 2 calls)",
            ],
        ),
        (_TABLE, "s3:DeleteObject", f"{_IN_BUCKET}.tflock", []),
        (_LOCK_FILE, "dynamodb:*", "*", []),
        (_LOCK_FILE, "kms:*", "*", []),
    ],
    ids=str,
)
def test_each_right_to_a_state_that_is_missing_is_named(
    account: Account,
    roots: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
    action: str,
    resource: str,
    told: list[str],
) -> None:
    account.client("s3").create_bucket(Bucket="states")
    _in_backend(roots, "states", settings)
    lacks = {"Effect": "Deny", "Action": action, "Resource": resource}
    _ask_as(monkeypatch, account.user(next(_NAMES), _ALL, lacks))
    reached, *found = _states(roots)
    assert reached.state == "ok"
    assert [finding.message for finding in found if finding.state == "fault"] == told
    ok = {"read", "lock", "write"} - {message.split()[1] for message in told}
    assert [finding.message for finding in found if finding.state == "ok"] == [
        f"you may {', '.join(purpose for purpose in ('read', 'lock', 'write') if purpose in ok)} {_STATE}"
    ]
    assert "Contents" not in account.client("s3").list_objects_v2(Bucket="states")


def test_it_is_the_state_that_terraform_has(
    account: Account, roots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.client("s3").create_bucket(Bucket="states")
    _in_backend(roots, "states")
    job, platform = _planned(tmp_path).job, _platform(global_suffix=f"_{REGION}")
    terraform = job_terraform(job, Target("aws", tmp_path), platform)
    terraform.root = roots / "JOB_ROOT"
    key = terraform._backend()["key"]
    assert key == f"sagefit/tried/jobs/tried_{REGION}.tfstate"
    _ask_as(monkeypatch, account.user(next(_NAMES), _ALL))
    assert _states(roots, job, platform)[-1].message.endswith(f" s3://states/{key}")


def test_who_may_not_ask_about_a_state_is_told_so(
    account: Account, roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.client("s3").create_bucket(Bucket="states")
    _in_backend(roots, "states")
    _ask_as(monkeypatch, account.user("silent", {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}))
    reached, found = _states(roots)
    assert (reached.state, found.state, found.fix) == ("ok", "unknown", "allow SimulatePrincipalPolicy to ask")


@pytest.mark.parametrize(
    "settings",
    ['assume_role = { role_arn = "arn:aws:iam::123456789012:role/states" }', 'profile = "states"'],
    ids=["role", "profile"],
)
def test_a_backend_with_a_role_of_its_own_is_not_judged_by_the_caller(
    account: Account, roots: Path, monkeypatch: pytest.MonkeyPatch, settings: str
) -> None:
    account.client("s3").create_bucket(Bucket="states")
    _in_backend(roots, "states", f"{settings}\n    {_LOCK_FILE}")
    lacks = {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "*"}
    _ask_as(monkeypatch, account.user(next(_NAMES), _ALL, lacks))
    reached, found = _states(roots)
    assert (reached.state, found.state) == ("ok", "unknown")
    assert settings.split()[0].replace("assume_role", "role_arn") in found.message


# --- what the caller may do


def test_a_role_is_found_by_its_session_and_judged_with_its_boundary(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    iam = account.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    every = json.dumps({"Version": "2012-10-17", "Statement": [_ALL]})
    reads = [{"Effect": "Allow", "Action": ["*:Get*", "*:List*", "*:Describe*", "iam:Simulate*"], "Resource": "*"}]
    bound = iam.create_policy(
        PolicyName="reads", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": reads})
    )["Policy"]["Arn"]
    role = iam.create_role(
        RoleName="bounded",
        Path="/people/",
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        PermissionsBoundary=bound,
    )["Role"]["Arn"]
    iam.put_role_policy(RoleName="bounded", PolicyName="all", PolicyDocument=every)
    keys = account.client("sts").assume_role(RoleArn=role, RoleSessionName="ada")["Credentials"]
    own = {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }
    _ask_as(monkeypatch, account.environment | own)
    found = list(permissions.check_permissions(_caller(), "tried", None, None))
    assert [finding.state for finding in found] == ["fault", "fault"]
    assert "you lack states:ValidateStateMachineDefinition (1 of" in found[0].message
    assert "let arn:aws:iam::123456789012:role/people/bounded make these calls" in found[0].fix
    assert found[1].message.startswith("to apply platform tried you lack cloudwatch:PutDashboard, ")


def test_what_depends_on_a_key_that_is_not_known_is_no_fault(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    office = _ALL | {"Condition": {"StringEquals": {"aws:SourceVpc": "vpc-1"}}}
    asks = {"Effect": "Allow", "Action": "iam:Simulate*", "Resource": "*"}
    _ask_as(monkeypatch, account.user("office", office, asks))
    found = list(permissions.check_permissions(_caller(), "tried", None, None))
    assert [finding.state for finding in found] == ["ok", "ok"]
    assert found[0].message.endswith("to plan platform tried, where aws:sourcevpc allow it")


def test_who_may_not_ask_is_told_so(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _ask_as(monkeypatch, account.user("mute", {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}))
    found = _only(guarded("permissions", permissions.check_permissions(_caller(), "tried", None, None)))
    assert (found.state, found.fix) == ("unknown", "allow SimulatePrincipalPolicy to ask")


def test_the_owner_of_the_embedded_cloud_may_do_everything() -> None:
    assert _only(permissions.check_permissions(_caller(), "tried", None, None)).state == "ok"


# --- what the account has


def test_quotas_count_what_is_used_at_once(tmp_path: Path) -> None:
    search = """
tuning:
  objective: { metric: loss, type: Minimize }
  max_jobs: 8
  max_parallel_jobs: 3
  ranges: { lr: { min: 0.1, max: 0.2 } }
metrics: [{ name: loss, regex: "loss (.*)" }]
processing:
  - name: prepare
    image: { framework: sklearn, version: 1.2-1 }
    code: { source_dir: ., entry_point: train.py }
    outputs: [out]
    resources: { instance_type: ml.m5.xlarge, instance_count: 21 }
"""
    needs = dict(quotas.needed(_planned(tmp_path, _GPU, "ml.g5.xlarge", 2, search)))
    assert needs == {
        "ml.m5.xlarge for processing job usage": (21, "processing prepare"),
        "ml.g5.xlarge for training job usage": (6, "attempt only"),
    }
    found = list(quotas.check_quotas(_planned(tmp_path, _GPU, "ml.g5.xlarge", 2, search), REGION))
    assert [(finding.state, finding.message) for finding in found] == [
        ("fault", "ml.m5.xlarge for processing job usage: 20, and processing prepare needs 21"),
        ("fault", "ml.g5.xlarge for training job usage: 4, and attempt only needs 6"),
    ]


# --- images


@pytest.mark.parametrize(
    ("image", "expected", "told"),
    [
        (_FRAMEWORK, "ok", "sagemaker-scikit-learn:1.2-1-cpu-py3 of account 683313688378 in us-east-1"),
        ("framework: xgboost, version: 1.7-1", "ok", "SageMaker's own, by the table"),
        (f"uri: '{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/absent:1'", "fault", "there is no absent:1"),
        (
            "uri: '763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:0.1'",
            "fault",
            "there is no pytorch-tra",
        ),
        ("uri: 'registry.example.com/a:1'", "unknown", "is not in Amazon ECR"),
    ],
)
def test_images(tmp_path: Path, image: str, expected: str, told: str) -> None:
    found = _only(images.check_images(_planned(tmp_path, image), _platform(), REGION))
    assert (found.state, told in found.message) == (expected, True), found


def test_what_a_region_lacks_is_said_once(tmp_path: Path) -> None:
    job = _planned(tmp_path)
    assert list(images.check_images(job, None, "mars-north-1")) == []
    assert [problem.field for problem in region_problems(job.job, "mars-north-1")] == [("image",)]


def test_an_image_that_was_not_built_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    (tmp_path / "image" / "Dockerfile").write_text("FROM scratch\n")
    job = _planned(tmp_path, 'repository: "", tag: v1, build: image')
    found = _only(
        images.check_images(job, _platform(repository_url=f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/a"), REGION)
    )
    assert found.state == "fault"
    assert "nothing was built" in found.message


# --- data and keys


def test_data_has_to_be_there_and_in_the_region(account: Account, tmp_path: Path) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="far", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.create_bucket(Bucket="near")
    s3.put_object(Bucket="near", Key="train/a", Body=b"1")
    for uri, told in {
        "s3://absent/train": "there is no bucket absent",
        "s3://far/train": "far is in eu-west-1",
        "s3://near/test": "nothing lies at s3://near/test",
    }.items():
        found = _only(data.check_inputs(_planned(tmp_path, more=f"inputs: {{ train: {uri} }}").job, REGION))
        assert found.state == "fault"
        assert told in found.message
    there = _planned(tmp_path, more="inputs: { train: s3://near/train }").job
    assert _only(data.check_inputs(there, REGION)).state == "ok"


def test_keys_have_to_be_enabled(account: Account) -> None:
    kms = account.client("kms")
    key = kms.create_key()["KeyMetadata"]
    assert _only(data.check_keys(None, _platform(kms_key_arn=key["Arn"]))).state == "ok"
    kms.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=7)
    found = _only(data.check_keys(None, _platform(kms_key_arn=key["Arn"])))
    assert found.fix.startswith("aws kms cancel-key-deletion")
    absent = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/00000000-0000-0000-0000-000000000000"
    assert "not there" in _only(data.check_keys(None, _platform(kms_key_arn=absent))).message


# --- the network


class Vpc:
    """A VPC with a subnet and a security group."""

    def __init__(self, account: Account, number: int, tenancy: str = "default") -> None:
        self.ec2 = account.client("ec2")
        block = f"10.{number}.0.0"
        self.id = self.ec2.create_vpc(CidrBlock=f"{block}/16", InstanceTenancy=tenancy)["Vpc"]["VpcId"]
        made = self.ec2.create_subnet(VpcId=self.id, CidrBlock=f"{block}/28", AvailabilityZone=f"{REGION}a")
        self.subnet = made["Subnet"]["SubnetId"]
        self.group = self.ec2.create_security_group(GroupName="g", Description="g", VpcId=self.id)["GroupId"]
        filters = [{"Name": "vpc-id", "Values": [self.id]}]
        self.table = self.ec2.describe_route_tables(Filters=filters)["RouteTables"][0]["RouteTableId"]

    def leads(self, **to: str) -> None:
        """Lead everything somewhere."""
        self.ec2.create_route(RouteTableId=self.table, DestinationCidrBlock="0.0.0.0/0", **to)

    def found(self, job: JobPlan | None = None, *, subnets: tuple[str, ...] = ()) -> list[Finding]:
        shared = Network(subnet_ids=[self.subnet, *subnets], security_group_ids=[self.group])
        return list(network.check_network(job, _platform(network=shared), REGION))

    def told(self, job: JobPlan | None = None, *, subnets: tuple[str, ...] = ()) -> str:
        return "; ".join(f"{each.state}: {each.message}" for each in self.found(job, subnets=subnets))


def test_without_a_vpc_nothing_is_said() -> None:
    assert list(network.check_network(None, _platform(), REGION)) == []
    assert list(network.check_network(None, None, REGION)) == []


def test_an_internet_gateway_is_no_way_out_and_a_nat_is_one(account: Account) -> None:
    vpc = Vpc(account, 20)
    assert "S3 cannot be reached" in vpc.told()
    gateway = vpc.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    vpc.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc.id)
    vpc.leads(GatewayId=gateway)
    assert "S3 cannot be reached" in vpc.told()
    vpc.ec2.delete_route(RouteTableId=vpc.table, DestinationCidrBlock="0.0.0.0/0")
    address = vpc.ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = vpc.ec2.create_nat_gateway(SubnetId=vpc.subnet, AllocationId=address)["NatGateway"]["NatGatewayId"]
    vpc.leads(NatGatewayId=nat)
    assert vpc.told() == f"ok: 1 subnets in {REGION}a; S3 can be reached"


def test_an_interface_endpoint_serves_the_whole_vpc(account: Account) -> None:
    vpc = Vpc(account, 21)
    name = f"com.amazonaws.{REGION}.s3"
    vpc.ec2.create_vpc_endpoint(
        VpcId=vpc.id,
        ServiceName=name,
        VpcEndpointType="Interface",
        SubnetIds=[vpc.subnet],
        SecurityGroupIds=[vpc.group],
    )
    assert vpc.told().startswith("ok")


def test_groups_must_let_something_out(account: Account) -> None:
    vpc = Vpc(account, 22)
    every = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    vpc.ec2.revoke_security_group_egress(GroupId=vpc.group, IpPermissions=every)
    assert "let nothing out" in vpc.told()


def test_subnets_of_several_vpcs_and_dedicated_ones_are_refused(account: Account) -> None:
    one, other = Vpc(account, 23, "dedicated"), Vpc(account, 24)
    told = one.told(subnets=(other.subnet,))
    assert "of several VPCs" in told
    assert "dedicated tenancy" in told


def test_a_subnet_that_is_not_there_is_a_fault(account: Account) -> None:
    told = Vpc(account, 25).told(subnets=("subnet-0123456789abcdef0",))
    assert told.startswith("fault: the subnet ID 'subnet-")
    assert told.endswith(f"does not exist, in {REGION}")


def test_a_subnet_has_to_have_an_address_for_each_host(account: Account, tmp_path: Path) -> None:
    told = Vpc(account, 26).told(_planned(tmp_path, count=12))
    assert "the largest subnet has 11 free addresses, and an attempt has 12 instances" in told


# --- the command


def test_logs_of_containers_are_said_to_be_kept_for_ever_until_they_are_not(account: Account) -> None:
    client, groups = account.client("logs"), ("/aws/sagemaker/ProcessingJobs", "/aws/sagemaker/TrainingJobs")
    platform = _platform(log_retention_days=90)
    key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
    assert "keeps logs for ever" in _only(logs.check_logs(platform)).message
    for name in groups:
        client.create_log_group(logGroupName=name)
    client.create_log_group(logGroupName="/aws/sagemaker/Endpoints/mine")
    try:
        endless = _only(logs.check_logs(platform))
        assert endless.state == "ok"
        assert endless.message.startswith(f"what containers log is kept for ever in {groups[0]} and {groups[1]};")
        assert f"put-retention-policy --log-group-name {groups[1]} --retention-in-days 90" in endless.message
        client.put_retention_policy(logGroupName=groups[1], retentionInDays=90)
        message = _only(logs.check_logs(platform)).message
        assert f"for ever in {groups[0]};" in message
        assert f"--log-group-name {groups[0]} " in message
        client.put_retention_policy(logGroupName=groups[0], retentionInDays=7)
        expire = f"logs of containers expire: {groups[0]} after 7 days, {groups[1]} after 90 days"
        assert _only(logs.check_logs(platform)).message == expire
        told = _only(logs.check_logs(_platform(kms_key_arn=key))).message
        assert told.startswith(f"no key of yours encrypts {groups[0]} and {groups[1]}")
    finally:
        for name in (*groups, "/aws/sagemaker/Endpoints/mine"):
            client.delete_log_group(logGroupName=name)


def test_the_command_ends_with_what_it_found(account: Account, tmp_path: Path) -> None:
    sagefit = Sagefit(tmp_path / "home", **account.environment)
    done = sagefit("doctor", "--platform", "absent")
    assert "absent is not applied yet" in done.out
    assert "nothing wrong was found" in done.err
    broken = sagefit("doctor", "quickstart", "--json", check=1)
    lines = [json.loads(line) for line in broken.out.splitlines()]
    assert {tuple(line) for line in lines} == {("check", "state", "message", "fix")}
    assert [line["check"] for line in lines if line["state"] == "fault"] == ["platform"]
    assert broken.err.strip().endswith("1 fault")
    assert "not both" in sagefit("doctor", "quickstart", "--platform", "dev", check=2).err

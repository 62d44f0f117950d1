"""A platform and its job are applied twice and destroyed under the pipeline's own roles; every call is judged.

It has a key that the company makes in the same configuration, eleven default tags, a region of its own and names that
end with it; another one is the same without a key and such names. The roles are those of ``examples/gitops/roles`` for
both, made in the same cloud.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from checkout import copy_tree
from cli_runner import Sagefit
from gitops.denied import ADMIN, TRUST, requests
from policies.offline import cloud, terraform
from sagefit.doctor.account import Caller, find_caller
from sagefit.doctor.asking import guarded
from sagefit.doctor.permissions import check_permissions, rows
from sagefit.gitops.history import runs_of
from sagefit.gitops.stacks import Stack
from sagefit.job import Job, load_job
from sagefit.paths import ROOT
from sagefit.platform import load_platform
from sagefit.reviewing import Runs
from sagefit.running import clients
from sagefit_cloud.role_calls import S3_ACTIONS

pytestmark = pytest.mark.xdist_group("gitops-roles")

ACCOUNT, REGION = "123456789012", "eu-central-1"
#: More than an object in S3 may have.
TAGS = {f"Company{number}": f"value {number}" for number in range(11)}
#: The machine's role creates jobs of runs alone, which have such names.
RUN = "digits-261128-120000"
CHANGED = {**TAGS, "Company0": "another"}
VISION, PLAIN = "vision", "plain"
#: What the names of each one's roles end with.
ENDS = {VISION: f"_{REGION}", PLAIN: ""}

_ROOT = """
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

variable "owner" {
  type      = object({ key = string, secret = string })
  sensitive = true
}

provider "aws" {
  region = "eu-central-1"
  default_tags { tags = %s }
}

# Keys are made by other people than those who make platforms.
provider "aws" {
  alias      = "keys"
  region     = "eu-central-1"
  access_key = var.owner.key
  secret_key = var.owner.secret
  token      = ""
}

%s

module "platform" {
  source = "../sagefit"

  name            = "%s"
  kms             = %s
  regional_names  = %s
  buckets         = { force_destroy = true }
  alarms          = { emails = ["ada@example.com"] }

  # Rules of buckets take a minute.
  checkpoint_days        = 0
  unfinished_upload_days = 0

  permissions_boundary_arn = "arn:aws:iam::123456789012:policy/sagefit-ci-boundary"
}

module "job" {
  source   = "../sagefit/modules/training-job"
  name     = "digits"
  platform = module.platform.document
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large", max_runtime_seconds = 600 }]

  resources = { poll_seconds = 1 }
  schedule = { expression = "cron(0 3 1 1 ? 2199)" } # a rate would start a run at once
}

output "arn" {
  value = module.job.state_machine_arn
}
"""
_KEY = """
resource "aws_kms_key" "own" {
  provider    = aws.keys
  description = "the company's"
  tags        = { "sagefit:platform" = "vision" }
}
"""
_WITH_KEY = "{ key = { arn = aws_kms_key.own.arn } }"
#: The same without a key runs where something has changed that a role needs rights for.
_WITHOUT = pytest.mark.of_files(
    *("*.tf", "modules", "examples/gitops/roles", "python/sagefit_cloud", "python/sagefit/iam", "requirements.lock"),
    *("python/sagefit/doctor", "python/sagefit/gitops/history.py", "tests/gitops/test_under_the_roles.py"),
)


@dataclass
class Company:
    """The company's root beside Sagefit's, and the cloud with the pipeline's roles."""

    root: Path
    cloud: Path
    """The folder of the cloud."""
    platform: str
    owner: dict[str, str]
    roles: dict[str, str]
    """The ARN of each role, by its name in the example."""
    before: int
    """How many calls the owner made to make them."""
    second: str = ""
    """What Terraform said of the second apply."""
    refused: tuple[str, ...] = ()
    """The calls of both that the role may not make."""

    def denied(self, since: int) -> tuple[str, ...]:
        """The calls after the first so many that were answered with 403."""
        made = Sagefit(self.cloud).calls()[since:]
        return tuple(f"{call['service']}:{call['action']}" for call in made if call["status"] == 403)

    def of(self, role: str) -> dict[str, str]:
        """The environment of a session with a role."""
        arn = self.roles[f"{role}_role_arn"]
        keys = self.client("sts").assume_role(RoleArn=arn, RoleSessionName="pipeline")["Credentials"]
        return self.owner | {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
        }

    def client(self, service: str, environment: dict[str, str] | None = None) -> Any:
        """A client of the owner, or of a session."""
        keys = environment or self.owner
        make: Any = boto3.client
        return make(
            service,
            region_name=REGION,
            endpoint_url=keys["AWS_ENDPOINT_URL"],
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=keys.get("AWS_SESSION_TOKEN"),
            config=Config(retries={"total_max_attempts": 1}),
        )

    def terraform(self, role: str, *arguments: str) -> str:
        """What Terraform prints to somebody with a role."""
        return terraform(self.root, self.of(role), *arguments)


@pytest.fixture(scope="module", params=[VISION, pytest.param(PLAIN, marks=_WITHOUT)])
def company(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    platform: str = request.param
    folder = tmp_path_factory.mktemp("company")
    (folder / "sagefit").mkdir()
    copy_tree(folder / "sagefit")
    root, roles = folder / "root", folder / "roles"
    (root / "code").mkdir(parents=True)
    _write_code(root, "hello")
    _write_root(root, platform, TAGS)
    shutil.copytree(ROOT / "examples" / "gitops" / "roles", roles, ignore=shutil.ignore_patterns(".terraform*"))
    values = {
        "account_id": ACCOUNT,
        "region": REGION,
        "repository": "ada/models",
        "platforms": [VISION, PLAIN],
        "state": {"bucket": "my-state"},
    }
    (roles / "terraform.tfvars.json").write_text(json.dumps(values), encoding="utf-8")
    with cloud(folder / "cloud") as owner:
        keys = {"key": owner["AWS_ACCESS_KEY_ID"], "secret": owner["AWS_SECRET_ACCESS_KEY"]}
        (root / "terraform.tfvars.json").write_text(json.dumps({"owner": keys}), encoding="utf-8")
        for place in (roles, root):
            terraform(place, owner, "init")
        terraform(roles, owner, "apply", "-input=false", "-auto-approve")
        found = json.loads(terraform(roles, owner, "output", "-json"))
        arns = {name: output["value"] for name, output in found.items()}
        place = folder / "cloud"
        yield _applied_twice(Company(root, place, platform, owner, arns, len(Sagefit(place).calls())))


def _applied_twice(company: Company) -> Company:
    """With changed code and tags the second time, under the apply role: every test here is about what that made."""
    company.terraform("apply", "apply", "-input=false", "-auto-approve")
    _write_code(company.root, "hello again")
    _write_root(company.root, company.platform, CHANGED)
    said = company.terraform("apply", "apply", "-input=false", "-auto-approve", "-no-color")
    return replace(company, second=said, refused=company.denied(company.before))


def _write_root(root: Path, platform: str, tags: dict[str, str]) -> None:
    made, given = (_KEY, _WITH_KEY) if platform == VISION else ("", "{}")
    text = _ROOT % (json.dumps(tags), made, platform, given, json.dumps(platform == VISION))
    (root / "main.tf").write_text(text, encoding="utf-8")


def _write_code(root: Path, word: str) -> None:
    (root / "code" / "train.py").write_text(f"print({word!r})\n", encoding="utf-8")


def test_it_is_applied_twice_under_the_apply_role(company: Company) -> None:
    counts = re.search(r"(\d+) added, (\d+) changed, (\d+) destroyed", company.second)
    assert counts, company.second[-2000:]
    added, changed, destroyed = map(int, counts.groups())
    assert (added, destroyed) == (1, 1)  # the file of the code
    assert changed >= 25  # whatever has tags


def test_no_call_of_an_apply_is_refused(company: Company) -> None:
    """Not even one that Terraform would go on without."""
    assert company.refused == ()


def test_the_plan_role_sees_that_nothing_is_left_to_do(company: Company) -> None:
    before = len(Sagefit(company.cloud).calls())
    company.terraform("plan", "plan", "-input=false", "-lock=false", "-detailed-exitcode")
    assert company.denied(before) == ()


def test_what_costs_money_has_the_tags_and_the_key_of_the_company(company: Company) -> None:
    arn = json.loads(terraform(company.root, company.owner, "output", "-json", "arn"))
    assert arn == f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:sagefit-{company.platform}-digits"
    described = company.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    request = json.loads(described["definition"])["States"]["first: submit"]["Parameters"]
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    assert CHANGED.items() <= tags.items()
    assert tags["sagefit:job"] == "digits"
    keys = [key["KeyArn"] for key in company.client("kms").list_keys()["Keys"]]
    assert request["OutputDataConfig"].get("KmsKeyId") in (keys if company.platform == VISION else [None])


_DATA = f"sagefit-vision-{ACCOUNT}-{REGION}-data"
DENIED = list(requests(ACCOUNT, REGION))


@pytest.mark.parametrize(("role", "service", "method", "request_"), DENIED, ids=[f"{r[0]} {r[2]}" for r in DENIED])
def test_a_role_may_not(company: Company, role: str, service: str, method: str, request_: dict[str, Any]) -> None:
    if request_.get("KeyId"):
        request_ = request_ | {"KeyId": company.client("kms").create_key()["KeyMetadata"]["KeyId"]}
    with pytest.raises(ClientError, match=r"AccessDenied.*is not authorized to perform") as caught:
        getattr(company.client(service, company.of(role)), method)(**request_)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


_JOB = """
name: digits
platform: {platform}
image: {{ framework: sklearn, version: "1.2-1" }}
code: {{ source_dir: code, entry_point: train.py }}
resources: {{ instance_type: ml.m5.large }}
attempts: [{{ name: first }}]
schedule: rate(1 day)
"""


@pytest.mark.parametrize("role", ["plan", "apply"])
@pytest.mark.parametrize("of", ["platform", "job"])
def test_doctor_says_what_a_role_may_do(company: Company, monkeypatch: pytest.MonkeyPatch, role: str, of: str) -> None:
    _act_as(monkeypatch, company.of(role))
    path = company.root / "digits.yaml"
    path.write_text(_JOB.format(platform=company.platform), encoding="utf-8")
    job, caller = load_job(str(path)) if of == "job" else None, find_caller()
    assert isinstance(caller, Caller)
    if role == "apply":  # it may call nothing of IAM on itself, so the owner asks
        assert _states(caller, company, job) == ["unknown"]
        _act_as(monkeypatch, company.owner)
    may = {"plan": "ok", "apply": "ok" if role == "apply" else "fault"}
    # A pipeline defines jobs, and starts none.
    assert _states(caller, company, job) == [*may.values(), *(["fault"] if job else [])]


def _act_as(patch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    patch.delenv("AWS_SESSION_TOKEN", raising=False)
    for name, value in environment.items():
        if name.startswith("AWS_"):
            patch.setenv(name, REGION if name.endswith("REGION") else value)
    patch.setattr(boto3, "DEFAULT_SESSION", None)  # it would remember the key
    for made in (clients.step_functions, clients.sagemaker, clients.s3, clients.logs, clients.cloudwatch):
        made.cache_clear()


def _states(caller: Caller, company: Company, job: Job | None) -> list[str]:
    platform = load_platform(company.platform)
    found = guarded("permissions", check_permissions(caller, company.platform, platform, job))
    return [finding.state for finding in found]


def test_doctor_asks_for_every_call_that_terraform_made(company: Company) -> None:
    calls = Sagefit(company.cloud).calls()[company.before :]
    made = {_permission(call["service"], call["action"]) for call in calls if call["status"] < 400}
    asked = {action for row in rows() for action in row.actions}
    # Keys are made and described by others, a session needs no leave, and what doctor asks itself is not of an apply.
    others = ("kms:", "sts:", "iam:Simulate")
    assert sorted(action for action in made - asked if not action.startswith(others)) == []
    assert len(made & asked) >= 50


def _permission(service: str, action: str) -> str:
    name = {"stepfunctions": "states", "service-quotas": "servicequotas"}.get(service, service)
    return f"{name}:{S3_ACTIONS.get(action, action) if name == 's3' else action}"


@pytest.fixture(scope="module")
def ran(company: Company) -> str:
    """How a run of its job ended, and why."""
    machine = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:sagefit-{company.platform}-digits"
    states = company.client("stepfunctions")
    run = states.start_execution(stateMachineArn=machine, name=RUN, input="{}")["executionArn"]
    until = time.monotonic() + 120
    while (told := states.describe_execution(executionArn=run))["status"] == "RUNNING" and time.monotonic() < until:
        time.sleep(0.5)
    s3, bucket = company.client("s3"), _DATA.replace("vision", company.platform).replace("-data", "-artifacts")
    for made in s3.list_object_versions(Bucket=bucket)["Versions"]:  # the apply role deletes no models
        s3.delete_object(Bucket=bucket, Key=made["Key"], VersionId=made["VersionId"])
    return f"{told['status']} {told.get('cause', '')}".strip()


def test_a_run_needs_no_more_than_the_boundary(ran: str) -> None:
    assert ran == "SUCCEEDED"


@pytest.mark.parametrize("role", ["plan", "apply"])
def test_a_page_tells_of_runs_by_what_a_role_may_see(
    company: Company, ran: str, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    assert ran == "SUCCEEDED"
    _act_as(monkeypatch, company.of(role))
    platform, tfvars = company.platform, company.root / "x.tfvars"
    shared = Stack(f"{platform}/platform", platform, platform, tfvars)
    job = Stack(f"{platform}/jobs/digits", platform, "digits", tfvars)
    told = runs_of(job, [shared, job])
    assert told.unknown == ""
    (run,) = told.last
    assert (run.name, run.ended, run.attempts, run.hardware) == (RUN, "completed", 1, "ml.m5.large")
    assert run.usd is None  # no price of this region is known
    assert run.host_gib  # of the metrics that SageMaker keeps with the job, for the report lies among the models
    assert runs_of(shared, [shared, job]) == Runs(jobs=["digits"])


def test_what_a_role_may_not_see_is_said_and_stops_no_plan(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    iam = company.client("iam")
    iam.create_role(RoleName="sees-nothing", AssumeRolePolicyDocument=TRUST)
    own = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": "*"}]}
    iam.put_role_policy(RoleName="sees-nothing", PolicyName="x", PolicyDocument=json.dumps(own))
    _act_as(monkeypatch, replace(company, roles={"x_role_arn": f"arn:aws:iam::{ACCOUNT}:role/sees-nothing"}).of("x"))
    platform = company.platform
    job = Stack(f"{platform}/jobs/digits", platform, "digits", company.root / "x.tfvars")
    told = runs_of(job, [job])
    assert told == Runs(unknown=told.unknown)
    assert "states:ListExecutions" in told.unknown


def test_a_role_that_was_given_everything_has_what_the_boundary_leaves(company: Company) -> None:
    """Two steps that IAM cannot keep the apply role from: a policy that allows everything, and trust for anybody."""
    name = f"sagefit-{company.platform}-execution{ENDS[company.platform]}"
    iam = company.client("iam", company.of("apply"))
    iam.put_role_policy(RoleName=name, PolicyName="more", PolicyDocument=ADMIN)
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=TRUST)
    arn = company.client("iam").get_role(RoleName=name)["Role"]["Arn"]
    keys = company.client("sts").assume_role(RoleArn=arn, RoleSessionName="mine")["Credentials"]
    mine = company.owner | {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }
    company.client("sagemaker", mine).list_training_jobs()
    for service, method, request in _AS_ADMINISTRATOR:
        with pytest.raises(ClientError, match=r"AccessDenied.*is not authorized to perform"):
            getattr(company.client(service, mine), method)(**request)
    iam.delete_role_policy(RoleName=name, PolicyName="more")


_AS_ADMINISTRATOR: list[tuple[str, str, dict[str, Any]]] = [
    ("iam", "create_user", {"UserName": "mine"}),
    ("iam", "put_role_policy", {"RoleName": "sagefit-ci-apply", "PolicyName": "x", "PolicyDocument": ADMIN}),
    ("sts", "assume_role", {"RoleArn": f"arn:aws:iam::{ACCOUNT}:role/sagefit-ci-apply", "RoleSessionName": "mine"}),
    ("s3", "put_object", {"Bucket": "my-state", "Key": "sagefit/vision/platform.tfstate", "Body": b""}),
    ("secretsmanager", "get_secret_value", {"SecretId": "x"}),
]


def test_it_is_destroyed_under_the_apply_role(company: Company) -> None:
    before = len(Sagefit(company.cloud).calls())
    company.terraform("apply", "destroy", "-input=false", "-auto-approve")
    assert company.denied(before) == ()
    assert terraform(company.root, company.owner, "state", "list") == ""

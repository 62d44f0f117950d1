"""What companies do with the modules: a key of the same configuration, tags of their own, two regions in one root."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from checkout import copy_tree
from policies.offline import cloud, run, terraform

pytestmark = pytest.mark.xdist_group("consumer")

#: More than an object in S3 may have.
TAGS = {f"Company{number}": f"value {number}" for number in range(11)}

_ROOT = """
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

locals {
  tags = %s
}

provider "aws" {
  region = "us-east-1"
  default_tags { tags = local.tags }
}

provider "aws" {
  alias  = "eu"
  region = "eu-central-1"
  default_tags { tags = local.tags }
}

resource "aws_kms_key" "own" {
  provider    = aws.eu
  description = "the company's"
}

module "platform" {
  source    = "../sagefit"
  providers = { aws = aws.eu }

  name    = "vision"
  kms     = { key = { arn = aws_kms_key.own.arn } }
  buckets = { force_destroy = true }

  checkpoint_days = 0 # the rule takes a minute
}

module "job" {
  source    = "../sagefit/modules/training-job"
  providers = { aws = %s }

  name     = "digits"
  platform = module.platform.document
  image    = { framework = "sklearn", version = "1.2-1" }
  code     = { source_dir = "code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
}

output "arn" {
  value = module.job.state_machine_arn
}
"""


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder of the company's root, beside Sagefit's, and the environment in which Terraform finds the cloud."""
    folder = tmp_path_factory.mktemp("company")
    (folder / "sagefit").mkdir()
    copy_tree(folder / "sagefit")
    root = folder / "root"
    (root / "code").mkdir(parents=True)
    (root / "code" / "train.py").write_text("print('hello')\n", encoding="utf-8")
    with cloud(folder / "cloud") as environment:
        _write(root, "aws.eu")
        terraform(root, environment, "init")
        yield root, environment


def _write(root: Path, provider_of_the_job: str) -> None:
    (root / "main.tf").write_text(_ROOT % (json.dumps(TAGS), provider_of_the_job), encoding="utf-8")


def test_a_provider_that_is_forgotten_is_refused_at_plan(company: tuple[Path, dict[str, str]]) -> None:
    """The job would be made in another region than its platform, with ARNs of things that are not there."""
    root, environment = company
    _write(root, "aws")
    try:
        refused = run(root, environment, "plan", "-input=false", "-no-color")
    finally:
        _write(root, "aws.eu")
    assert refused.returncode == 1
    said = " ".join(refused.stderr.replace("│", " ").split())
    assert "platform.region: is eu-central-1, and the job's provider works in us-east-1." in said
    assert "providers = { aws = aws.ALIAS }" in said


def test_own_key_many_tags_and_another_region(company: tuple[Path, dict[str, str]]) -> None:
    """Applied, nothing left to do, what the money is spent on has the company's tags, and all of it goes again."""
    root, environment = company
    terraform(root, environment, "apply", "-input=false", "-auto-approve")
    terraform(root, environment, "plan", "-input=false", "-detailed-exitcode")

    def client(service: str) -> Any:
        make: Any = boto3.client
        return make(
            service,
            region_name="eu-central-1",
            endpoint_url=environment["AWS_ENDPOINT_URL"],
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        )

    arn = json.loads(terraform(root, environment, "output", "-json"))["arn"]["value"]
    assert arn.startswith("arn:aws:states:eu-central-1:")
    machine = json.loads(client("stepfunctions").describe_state_machine(stateMachineArn=arn)["definition"])
    request = machine["States"]["first: submit"]["Parameters"]
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    assert TAGS.items() <= tags.items()
    assert tags["sagefit:job"] == "digits"
    keys = client("kms").list_keys()["Keys"]
    assert request["OutputDataConfig"]["KmsKeyId"] in [key["KeyArn"] for key in keys]
    terraform(root, environment, "destroy", "-input=false", "-auto-approve")
    assert terraform(root, environment, "state", "list") == ""

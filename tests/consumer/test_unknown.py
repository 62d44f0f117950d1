"""A company that makes what the platform and its jobs are given in the same configuration: no plan knows it.

Ids and ARNs of a resource that is being made are known after the apply only. So nothing that says how many resources
there are may depend on one: Terraform refuses such a plan.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from checkout import copy_tree
from policies.offline import cloud, run, terraform

pytestmark = pytest.mark.xdist_group("consumer-unknown")

_ROOT = """
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

provider "aws" {
  region = "eu-central-1"
}

# What the company makes beside the platform, in the same configuration: no plan knows its ids and ARNs.
resource "aws_kms_key" "own" {
  description = "of the company"
}

resource "aws_iam_policy" "boundary" {
  name = "boundary"
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "*", Resource = "*" }]
  })
}

resource "aws_iam_policy" "further" {
  name = "further"
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "s3:ListAllMyBuckets", Resource = "*" }]
  })
}

resource "aws_ecr_repository" "team" {
  for_each = toset(["base", "vision"])

  name         = "team/${each.key}"
  force_delete = true
}

resource "aws_s3_bucket" "logs" {
  bucket_prefix = "company-logs-"
  force_destroy = true
}

resource "aws_s3_bucket_policy" "logs" {
  bucket = aws_s3_bucket.logs.bucket
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "logging.s3.amazonaws.com" }
      Action    = "s3:PutObject"
      Resource  = "${aws_s3_bucket.logs.arn}/*"
    }]
  })
}

resource "aws_s3_bucket" "shared" {
  bucket_prefix = "company-shared-"
  force_destroy = true
}

resource "aws_vpc" "own" {
  cidr_block = "10.0.0.0/16"
}

resource "aws_subnet" "own" {
  count = 2

  vpc_id     = aws_vpc.own.id
  cidr_block = "10.0.${count.index}.0/24"
}

resource "aws_efs_file_system" "own" {}

resource "aws_security_group" "own" {
  name   = "jobs"
  vpc_id = aws_vpc.own.id
}

module "platform" {
  source = "../sagefit"

  name = "vision"

  # Rules of buckets take a minute.
  checkpoint_days        = 0
  unfinished_upload_days = 0

    kms                      = { key = { arn = aws_kms_key.own.arn } }
  permissions_boundary_arn = aws_iam_policy.boundary.arn
  tags                     = { vpc = aws_vpc.own.id }
  network = {
    subnet_ids         = aws_subnet.own[*].id
    security_group_ids = [aws_security_group.own.id]
  }
  buckets = {
    force_destroy = true
    access_log    = { bucket = aws_s3_bucket_policy.logs.bucket }
  }
  execution_role = {
    repository_arns     = [for repository in aws_ecr_repository.team : repository.arn]
    managed_policy_arns = { further = aws_iam_policy.further.arn }
    buckets = {
      reference = { name = aws_s3_bucket.shared.bucket, prefixes = ["reference/"] }
      out       = { name = aws_s3_bucket.shared.bucket, prefixes = ["out/"], access = "write" }
    }
  }
}

module "job" {
  source = "../sagefit/modules/training-job"

  name     = "digits"
  platform = module.platform.document
  image    = { uri = "${aws_ecr_repository.team["vision"].repository_url}:1" }
  code     = { source_dir = "code", entry_point = "train.py" }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
  channels = { shared = { s3_uri = "s3://${aws_s3_bucket.shared.bucket}/reference/" } }
  processing = [{
    name          = "prepare"
    image         = { uri = "${aws_ecr_repository.team["base"].repository_url}:1" }
    code          = { source_dir = "code", entry_point = "train.py", arguments = [aws_s3_bucket.shared.bucket] }
    environment   = { BUCKET = aws_s3_bucket.shared.bucket }
    inputs        = { shared = { s3_uri = "s3://${aws_s3_bucket.shared.bucket}/reference/" } }
    outputs       = ["data"]
    instance_type = "ml.m5.large"
  }]
}

module "own" {
  source = "../sagefit/modules/training-job"

  name     = "digits-own"
  platform = module.platform.document
  image    = { repository = aws_ecr_repository.team["base"].repository_url, tag = "1" }
  code     = { source_dir = "code", entry_point = "train.py", arguments = ["--bucket", aws_s3_bucket.shared.bucket] }
  attempts = [{ name = "first", instance_type = "ml.m5.large" }]
  resources = {
    subnet_ids         = [aws_subnet.own[0].id]
    security_group_ids = [aws_security_group.own.id]
    volume_kms_key_arn = aws_kms_key.own.arn
    output_kms_key_arn = aws_kms_key.own.arn
    output_s3_uri      = "s3://${aws_s3_bucket.shared.bucket}/out"
  }
  channels = {
    files = { file_system = { id = aws_efs_file_system.own.id, type = "EFS", directory_path = "/data" } }
  }
  environment     = { BUCKET = aws_s3_bucket.shared.bucket }
  hyperparameters = { bucket = aws_s3_bucket.shared.bucket }
  tags            = { vpc = aws_vpc.own.id }
  schedule        = { expression = "cron(0 3 1 1 ? 2199)" }
}
"""


@pytest.mark.of_files("*.tf", "modules", "tests/consumer", "python/sagefit_cloud/extensions")
def test_a_configuration_that_makes_everything_at_once(tmp_path: Path) -> None:
    """Planned, applied, planned empty, and destroyed."""
    (tmp_path / "sagefit").mkdir()
    copy_tree(tmp_path / "sagefit")
    root = tmp_path / "root"
    (root / "code").mkdir(parents=True)
    (root / "code" / "train.py").write_text("print('hello')\n", encoding="utf-8")
    (root / "main.tf").write_text(_ROOT, encoding="utf-8")
    with cloud(tmp_path / "cloud") as environment:
        terraform(root, environment, "init")
        terraform(root, environment, "apply", "-input=false", "-auto-approve")
        again = run(root, environment, "plan", "-input=false", "-no-color", "-detailed-exitcode")
        assert again.returncode == 0, again.stdout[-5000:]
        terraform(root, environment, "destroy", "-input=false", "-auto-approve")
        assert terraform(root, environment, "state", "list") == ""
